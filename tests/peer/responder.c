/* SPDX-License-Identifier: BSD-3-Clause
 * The program at this project's end of the wire. The peer (peer.py) writes lines to it:
 *
 *   SESSION COMMAND WORD...
 *
 * and reads one line for each: `SESSION ok ...` or `SESSION error NUMBER text`. The first command
 * of a session begins it, and `end` ends it. Each session is a thread, so that it can wait without
 * delaying others. Commands that begin with m use the managed API (responder_managed.c), the others
 * level 0. */
#define _GNU_SOURCE
#include "responder.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

uint64_t number(int count, char** words, int at) {
  return at < count ? strtoull(words[at], NULL, 0) : 0;
}

uint64_t option(int count, char** words, const char* name, uint64_t otherwise) {
  const size_t length = strlen(name);
  for (int i = 1; i < count; ++i)
    if (strncmp(words[i], name, length) == 0 && words[i][length] == '=')
      return strtoull(words[i] + length + 1, NULL, 0);
  return otherwise;
}

/* The peer, another program, writes to the memory of a region. ThreadSanitizer cannot know the
   order of its writes and the reads here. */
#define SHARED_WITH_THE_PEER __attribute__((no_sanitize_thread))

SHARED_WITH_THE_PEER void to_hex(const unsigned char* bytes, size_t length, char* out) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < length; ++i) {
    *out++ = digits[bytes[i] >> 4];
    *out++ = digits[bytes[i] & 15];
  }
  *out = 0;
}

SHARED_WITH_THE_PEER size_t from_hex(const char* text, unsigned char* bytes, size_t most) {
  size_t length = 0;
  unsigned value;
  for (; length < most && sscanf(text + 2 * length, "%2x", &value) == 1; ++length)
    bytes[length] = (unsigned char)value;
  return length;
}

struct timeval* milliseconds(uint64_t ms, struct timeval* tv) {
  tv->tv_sec = (time_t)(ms / 1000);
  tv->tv_usec = (suseconds_t)(ms % 1000 * 1000);
  return tv;
}

static void answer(const struct session* s, int result, const char* out) {
  char text[160];
  if (result != 0) snprintf(text, sizeof text, "%s", result == 1 ? "?" : st_strerror(result));
  pthread_mutex_lock(&output);
  if (result == 0)
    printf("%s ok %s\n", s->name, out);
  else
    printf("%s error %d %s\n", s->name, result, text);
  fflush(stdout);
  pthread_mutex_unlock(&output);
}

static int command(struct session* s, int count, char** words, char* out) {
  if (words[0][0] == 'm') return managed_command(s, count, words, out);
  return level0_command(s, count, words, out);
}

static void* session_main(void* argument) {
  struct session s = *(struct session*)argument;
  FILE* const lines = fdopen(s.commands, "r");
  char *line = NULL, *words[kMostWords], *rest;
  char* const out = malloc(kOut);
  size_t room = 0;
  free(argument);
  while (getline(&line, &room, lines) > 0) {
    int count = 0;
    for (char* word = strtok_r(line, " \n", &rest); word != NULL && count < kMostWords;
         word = strtok_r(NULL, " \n", &rest))
      words[count++] = word;
    if (count == 0) continue;
    if (strcmp(words[0], "end") == 0) break;
    out[0] = 0;
    answer(&s, command(&s, count, words, out), out);
  }
  managed_end(&s);
  level0_end(&s);
  answer(&s, 0, "");
  free(line);
  free(out);
  fclose(lines);
  return NULL;
}

struct known {
  char name[32];
  int commands;
  pthread_t thread;
};

static struct known* find(struct known* sessions, size_t* count, const char* name) {
  int ends[2];
  for (size_t i = 0; i < *count; ++i)
    if (strcmp(sessions[i].name, name) == 0) return &sessions[i];
  struct known* const made = &sessions[*count];
  struct session* const s = calloc(1, sizeof *s);
  if (pipe(ends) != 0 || s == NULL) exit(1);
  snprintf(made->name, sizeof made->name, "%s", name);
  snprintf(s->name, sizeof s->name, "%s", name);
  s->commands = ends[0];
  made->commands = ends[1];
  if (pthread_create(&made->thread, NULL, session_main, s) != 0) exit(1);
  ++*count;
  return made;
}

int main(void) {
  enum { kMostSessions = 1024 };
  static struct known sessions[kMostSessions];
  size_t count = 0, room = 0;
  char* line = NULL;
  ssize_t length;
  while ((length = getline(&line, &room, stdin)) > 0 && count < kMostSessions) {
    char* const space = strchr(line, ' ');
    if (space == NULL) continue;
    *space = 0;
    struct known* const session = find(sessions, &count, line);
    const size_t left = (size_t)length - (size_t)(space + 1 - line);
    for (size_t done = 0; done < left;) {
      const ssize_t part = write(session->commands, space + 1 + done, left - done);
      if (part <= 0) break; /* it has ended */
      done += (size_t)part;
    }
  }
  for (size_t i = 0; i < count; ++i) {
    close(sessions[i].commands);
    pthread_join(sessions[i].thread, NULL);
  }
  managed_finish();
  free(line);
  return 0;
}
