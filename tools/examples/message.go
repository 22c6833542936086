// SPDX-License-Identifier: BSD-3-Clause

// The managed API from Go, by cgo: a message goes from one end of a connection to the other.
// Both ends are in this program, on the link of STP_LINK (default: the daemon's, else loop).
//
//	go run message.go    (with STP_LINK=loop)
package main

// #cgo pkg-config: libst
// #include <errno.h>
// #include <stdlib.h>
// #include <stp/managed.h>
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"
)

// Runs a call and gives its error in words: those of this thread's last call, so the goroutine stays on its thread.
func checked(what string, call func() C.int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if result := call(); result < 0 {
		return fmt.Errorf("%s: %s", what, C.GoString(C.st_strerror(result)))
	}
	return nil
}

// Takes events and gives them to a channel, until the queue is destroyed. It has a thread of its own while it waits.
func events(queue C.stm_queue_t) <-chan C.stm_event_t {
	out := make(chan C.stm_event_t)
	go func() {
		defer close(out)
		for {
			var event C.stm_event_t
			switch result := C.stm_queue_wait(queue, 1, &event, 1, -1); {
			case result == 1:
				out <- event
			case result != -C.EINTR: // the queue is gone
				return
			}
		}
	}()
	return out
}

const size = 4096

func run() error {
	var domain C.stm_domain_t
	var queue C.stm_queue_t
	var memory C.stm_memory_t
	var listener C.stm_listener_t
	var connection C.stm_connection_t
	bytes := C.malloc(size) // of C: the library keeps the pointer; the message, and from size / 2 on what is received
	defer C.free(bytes)
	port := C.CString(":3000")
	defer C.free(unsafe.Pointer(port))
	text := "Hello from Go"
	copy(unsafe.Slice((*byte)(bytes), size), text)
	into := unsafe.Add(bytes, size/2)

	if err := checked("opening the link", func() C.int { return C.stm_domain_open(nil, &domain) }); err != nil {
		return err
	}
	defer C.stm_domain_close(domain) // ends all that is on it, before the memory is freed
	var attr C.stm_connection_attr_t
	for _, step := range []struct {
		what string
		call func() C.int
	}{
		{"making a queue", func() C.int { return C.stm_queue_create(domain, 64, &queue) }},
		{"registering memory", func() C.int {
			return C.stm_memory_register(domain, bytes, size, C.STM_LOCAL_WRITE, &memory)
		}},
		{"listening", func() C.int { return C.stm_listen(domain, port, queue, 0, 0, &listener) }},
		{"making a connection", func() C.int {
			attr.size = C.sizeof_stm_connection_attr_t
			attr.events = queue
			return C.stm_connection_create(domain, &attr, &connection)
		}},
		{"connecting", func() C.int { return C.stm_connect(connection, port, -1, nil, 0) }},
		{"sending", func() C.int {
			return C.stm_send(connection, 1, 0, 7, memory, bytes, C.size_t(len(text)))
		}},
	} {
		if err := checked(step.what, step.call); err != nil {
			return err
		}
	}
	for event := range events(queue) {
		if event.status < 0 {
			return checked("an operation", func() C.int { return event.status })
		}
		peer := event.connection
		switch event.kind {
		case C.STM_REQUEST:
			if err := checked("accepting", func() C.int { return C.stm_accept(peer, &attr, nil, 0) }); err != nil {
				return err
			}
			err := checked("posting a receive", func() C.int { return C.stm_receive(peer, 2, memory, into, size/2) })
			if err != nil {
				return err
			}
		case C.STM_RECEIVE:
			fmt.Printf("received with tag %d: %s\n", event.tag, C.GoStringN((*C.char)(into), C.int(event.length)))
			return nil
		}
	}
	return fmt.Errorf("the link has ended")
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
