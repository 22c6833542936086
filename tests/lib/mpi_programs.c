/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: mpi_programs PROGRAM ROUNDS [PROGRAM ROUNDS]...
 * PROGRAM: pingpong, sizes, ring, anyone, collectives, threads or finalize, one after the other in
 * one job. MPI programs over the link that the library uses: short messages there and back
 * (pingpong), messages of all lengths up to 4 MiB (sizes), the same from each rank to the next
 * (ring), and from all to each, which receives from anyone and with any tag (anyone), Allreduce and
 * Alltoall of many lengths (collectives), and several threads per rank (threads). The first rank
 * ends, and the others so many seconds later (finalize). Checks all received data. With negative
 * ROUNDS it runs for ever. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 40000 /* numbers for each rank */
#define LONGEST (4 << 20)
#define MOST_RANKS 16
#define THREADS 4

static int rank, ranks;
static int given[MOST * MOST_RANKS], got[MOST * MOST_RANKS];
static const int sizes[] = {0,     1,     8,     100,   4064,   4096,   4097,    16383,   16384,
                            16385, 17408, 17409, 65536, 131072, 131073, 1000003, 1 << 20, LONGEST};

#define ANYONE 6 /* messages of each to each */
static const int any_sizes[ANYONE] = {8, 131073, 0, 17409, 100, 65536};

static void fail(const char* what, int round) {
  fprintf(stderr, "rank %d: %s in round %d\n", rank, what, round);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static int goes_on(int round, int rounds) {
  return rounds < 0 || round < rounds;
}

static void fill(unsigned char* bytes, int length, unsigned seed) {
  for (int i = 0; i < length; ++i) {
    seed = seed * 1664525u + 1013904223u;
    bytes[i] = (unsigned char)(seed >> 24);
  }
}

static void check(const unsigned char* bytes, int length, unsigned seed, int round) {
  for (int i = 0; i < length; ++i) {
    seed = seed * 1664525u + 1013904223u;
    if (bytes[i] != (unsigned char)(seed >> 24)) fail("another byte than was sent", round);
  }
}

static unsigned char* buffer(void) {
  unsigned char* bytes = malloc(LONGEST);
  if (bytes == NULL) fail("no memory", 0);
  return bytes;
}

static void pingpong(int rounds) {
  int other = 1 - rank, answer = 0;
  for (int round = 0; goes_on(round, rounds) && rank < 2; ++round) {
    if (rank == 0) MPI_Send(&round, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
    MPI_Recv(&answer, 1, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (answer != round) fail("another number than was sent", round);
    if (rank == 1) MPI_Send(&answer, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
  }
}

/* Sends to `to` and receives from `from` at the same time, each length. `tag`: the thread. */
static void exchange(int to, int from, int tag, int most, int round, unsigned char* out,
                     unsigned char* in) {
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes && sizes[i] <= most; ++i) {
    MPI_Status status;
    int length = 0;
    fill(out, sizes[i], (unsigned)(rank * 1000 + tag * 100 + round));
    memset(in, 0, (size_t)sizes[i]);
    MPI_Sendrecv(out, sizes[i], MPI_BYTE, to, tag, in, LONGEST, MPI_BYTE, from, tag, MPI_COMM_WORLD,
                 &status);
    MPI_Get_count(&status, MPI_BYTE, &length);
    if (length != sizes[i] || status.MPI_SOURCE != from || status.MPI_TAG != tag)
      fail("another message than was sent", round);
    check(in, length, (unsigned)(from * 1000 + tag * 100 + round), round);
  }
}

static void ring(int rounds) {
  unsigned char *out = buffer(), *in = buffer();
  for (int round = 0; goes_on(round, rounds); ++round)
    exchange((rank + 1) % ranks, (rank + ranks - 1) % ranks, 1, LONGEST, round, out, in);
  free(out);
  free(in);
}

/* The messages of a rank come in their order, whoever else sends. */
static void receive_from_anyone(int round, unsigned char* in) {
  int come[MOST_RANKS] = {0};
  for (int left = (ranks - 1) * ANYONE; left > 0; --left) {
    MPI_Status status;
    int length = 0;
    MPI_Recv(in, LONGEST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &length);
    const int from = status.MPI_SOURCE, which = come[from]++;
    if (status.MPI_TAG != which || length != any_sizes[which])
      fail("another message than was sent next", round);
    check(in, length, (unsigned)(from * 1000 + which * 100 + round), round);
  }
}

static void anyone(int rounds) {
  unsigned char *out = buffer(), *in = buffer();
  for (int round = 0; goes_on(round, rounds); ++round)
    for (int to = 0; to < ranks; ++to) {
      if (to == rank) receive_from_anyone(round, in);
      for (int i = 0; to != rank && i < ANYONE; ++i) {
        fill(out, any_sizes[i], (unsigned)(rank * 1000 + i * 100 + round));
        MPI_Send(out, any_sizes[i], MPI_BYTE, to, i, MPI_COMM_WORLD);
      }
      MPI_Barrier(MPI_COMM_WORLD);
    }
  free(out);
  free(in);
}

/* Rank 1 sends back what it receives. */
static void there_and_back(int rounds) {
  unsigned char *out = buffer(), *in = buffer();
  for (int round = 0; goes_on(round, rounds) && rank < 2; ++round)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
      fill(out, sizes[i], (unsigned)round);
      if (rank == 0) MPI_Send(out, sizes[i], MPI_BYTE, 1, 2, MPI_COMM_WORLD);
      MPI_Recv(in, LONGEST, MPI_BYTE, 1 - rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      check(in, sizes[i], (unsigned)round, round);
      if (rank == 1) MPI_Send(in, sizes[i], MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    }
  free(out);
  free(in);
}

static void allreduce(int length, int round) {
  for (int i = 0; i < length; ++i) given[i] = (rank + 1) * (i + round);
  MPI_Allreduce(given, got, length, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < length; ++i)
    if (got[i] != ranks * (ranks + 1) / 2 * (i + round)) fail("a wrong sum", round);
}

static void alltoall(int length, int round) {
  for (int to = 0; to < ranks; ++to)
    for (int i = 0; i < length; ++i) given[to * length + i] = rank * 1000 + to * 100 + i + round;
  memset(got, 0, sizeof got);
  MPI_Alltoall(given, length, MPI_INT, got, length, MPI_INT, MPI_COMM_WORLD);
  for (int from = 0; from < ranks; ++from)
    for (int i = 0; i < length; ++i)
      if (got[from * length + i] != from * 1000 + rank * 100 + i + round)
        fail("another number than was given", round);
}

static void collectives(int rounds) {
  static const int lengths[] = {1, 7, 100, 1000, 1025, 5000, MOST};
  for (int round = 0; goes_on(round, rounds); ++round)
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
      allreduce(lengths[i], round);
      alltoall(lengths[i], round);
    }
}

struct task {
  int tag, rounds;
};

static void* run_thread(void* argument) {
  const struct task* task = argument;
  unsigned char *out = buffer(), *in = buffer();
  for (int round = 0; goes_on(round, task->rounds); ++round)
    exchange((rank + 1) % ranks, (rank + ranks - 1) % ranks, task->tag, 1 << 17, round, out, in);
  free(out);
  free(in);
  return NULL;
}

static void threads(int rounds) {
  pthread_t running[THREADS];
  struct task tasks[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    tasks[i] = (struct task){10 + i, rounds};
    if (pthread_create(&running[i], NULL, run_thread, &tasks[i]) != 0) fail("no thread", 0);
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(running[i], NULL);
}

static void finalize(int rounds) {
  if (rank != 0 && rounds < 0) pause();
  if (rank != 0) sleep((unsigned)rounds);
  exit(MPI_Finalize());
}

static const struct Program {
  const char* name;
  void (*run)(int rounds);
} programs[] = {{"pingpong", pingpong}, {"sizes", there_and_back},    {"ring", ring},
                {"anyone", anyone},     {"collectives", collectives}, {"threads", threads},
                {"finalize", finalize}};
static const struct Program* find(const char* name) {
  size_t i = 0;
  while (i < sizeof programs / sizeof *programs && strcmp(name, programs[i].name) != 0) ++i;
  if (i == sizeof programs / sizeof *programs) fail("no such program", 0);
  return &programs[i];
}

int main(int argc, char** argv) {
  int several = 0;
  int level = MPI_THREAD_SINGLE;
  for (int i = 1; i < argc; i += 2) several |= strcmp(argv[i], "threads") == 0;
  MPI_Init_thread(&argc, &argv, several ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 3 || argc % 2 == 0 || ranks < 2 || ranks > MOST_RANKS)
    fail("two to sixteen ranks, and programs with their rounds", 0);
  if (several && level != MPI_THREAD_MULTIPLE) fail("no MPI_THREAD_MULTIPLE", 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) puts("it runs");
  fflush(stdout);
  for (int i = 1; i < argc; i += 2) {
    find(argv[i])->run(atoi(argv[i + 1]));
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d: all is right with %s\n", rank, argv[i]);
    fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
