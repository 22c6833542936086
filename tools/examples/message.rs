// SPDX-License-Identifier: BSD-3-Clause
//! The managed API from Rust, by its C ABI: a message goes from one end of a connection to the other.
//! Both ends are in this program, on the link of STP_LINK (default: the daemon's, else loop).
//!
//!     rustc -O message.rs -l stp && STP_LINK=loop ./message
use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

type Handle = *mut c_void; // stm_domain_t, stm_queue_t, ...: opaque pointers

#[repr(C)]
#[derive(Default)]
struct Event {
    kind: u32,
    status: i32,
    context: u64,
    length: u64,
    connection: usize,
    message: u32,
    tag: u32,
    request: u32,
    reserved: u32,
}
#[repr(C)]
struct ConnectionAttr {
    size: usize,
    context: u64,
    events: Handle,
    sends: Handle,
    receives: Handle,
    pool: Handle,
    group: u64,
    receive_wait: i64,
    flags: u32,
    reserved: u32,
}
const REQUEST: u32 = 1; // enum stm_event_kind
const RECEIVE: u32 = 7;
const LOCAL_WRITE: c_uint = 2;

#[link(name = "stp")]
extern "C" {
    fn st_strerror(error: c_int) -> *const c_char;
    fn stm_domain_open(attr: *const c_void, domain: *mut Handle) -> c_int;
    fn stm_domain_close(domain: Handle) -> c_int;
    fn stm_queue_create(domain: Handle, capacity: usize, queue: *mut Handle) -> c_int;
    fn stm_queue_wait(queue: Handle, threshold: c_int, events: *mut Event, max: c_int, timeout: i64) -> c_int;
    fn stm_memory_register(domain: Handle, ptr: *mut c_void, length: usize, access: c_uint, memory: *mut Handle) -> c_int;
    fn stm_listen(domain: Handle, port: *const c_char, queue: Handle, context: u64, backlog: c_uint, listener: *mut Handle) -> c_int;
    fn stm_connection_create(domain: Handle, attr: *const ConnectionAttr, connection: *mut Handle) -> c_int;
    fn stm_connect(connection: Handle, peer: *const c_char, timeout: i64, private: *const c_void, length: usize) -> c_int;
    fn stm_accept(connection: Handle, attr: *const ConnectionAttr, private: *const c_void, length: usize) -> c_int;
    fn stm_receive(connection: Handle, context: u64, memory: Handle, ptr: *mut c_void, length: usize) -> c_int;
    fn stm_send(connection: Handle, context: u64, flags: c_uint, tag: u32, memory: Handle, ptr: *const c_void, length: usize) -> c_int;
}

/// What the call gave, or its error in words: those of this thread's last call.
fn checked(what: &str, result: c_int) -> Result<c_int, String> {
    if result >= 0 {
        return Ok(result);
    }
    let reason = unsafe { CStr::from_ptr(st_strerror(result)) };
    Err(format!("{}: {}", what, reason.to_string_lossy()))
}

/// Closing the domain ends all that is on it, and lets go of the memory: so `bytes` has to live longer.
struct Domain(Handle);
impl Drop for Domain {
    fn drop(&mut self) {
        unsafe { stm_domain_close(self.0) };
    }
}

fn main() -> Result<(), String> {
    let port = b":3000\0".as_ptr() as *const c_char;
    let text = b"Hello from Rust";
    let mut bytes = vec![0u8; 4096]; // the message, and from 2048 on what is received; not resized below
    bytes[..text.len()].copy_from_slice(text);
    let memory_of = bytes.as_mut_ptr();
    unsafe {
        let (mut domain, mut queue, mut memory) = (null_mut(), null_mut(), null_mut());
        let (mut listener, mut connection) = (null_mut(), null_mut());
        checked("opening the link", stm_domain_open(null(), &mut domain))?;
        let domain = Domain(domain);
        checked("making a queue", stm_queue_create(domain.0, 64, &mut queue))?;
        checked("registering memory", stm_memory_register(domain.0, memory_of.cast(), 4096, LOCAL_WRITE, &mut memory))?;
        checked("listening", stm_listen(domain.0, port, queue, 0, 0, &mut listener))?;
        let attr = ConnectionAttr {
            size: std::mem::size_of::<ConnectionAttr>(),
            context: 0,
            events: queue,
            sends: null_mut(),
            receives: null_mut(),
            pool: null_mut(),
            group: 0,
            receive_wait: 0,
            flags: 0,
            reserved: 0,
        };
        checked("making a connection", stm_connection_create(domain.0, &attr, &mut connection))?;
        checked("connecting", stm_connect(connection, port, -1, null(), 0))?;
        checked("sending", stm_send(connection, 1, 0, 7, memory, memory_of.cast(), text.len()))?;
        loop {
            let mut event = Event::default();
            checked("waiting", stm_queue_wait(queue, 1, &mut event, 1, 20_000_000))?;
            checked("an operation", event.status)?;
            if event.kind == REQUEST {
                let peer = event.connection as Handle;
                checked("accepting", stm_accept(peer, &attr, null(), 0))?;
                checked("posting a receive", stm_receive(peer, 2, memory, memory_of.add(2048).cast(), 2048))?;
            } else if event.kind == RECEIVE {
                let received = std::slice::from_raw_parts(memory_of.add(2048), event.length as usize);
                println!("received with tag {}: {}", event.tag, String::from_utf8_lossy(received));
                return Ok(());
            }
        }
    }
}
