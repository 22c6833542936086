/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: one_sided ROUNDS
 * MPI's one-sided operations between each two ranks: puts and gets of all lengths up to 1 MiB, sums
 * of numbers of several types to which all ranks add at once, Fetch_and_op, Compare_and_swap, and
 * exclusive locks. Checks all that arrives. With -1 it accesses one window, and with -2 it makes
 * windows: it never ends. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST (1 << 20)
#define SUMS 100

static int rank, ranks;

static void fail(const char* what, int round) {
  fprintf(stderr, "rank %d: %s in round %d\n", rank, what, round);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void* window(MPI_Aint size, int unit, MPI_Win* made) {
  void* bytes = NULL;
  MPI_Win_allocate(size, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &bytes, made);
  memset(bytes, 0, (size_t)size);
  MPI_Barrier(MPI_COMM_WORLD);
  return bytes;
}

static unsigned char byte_of(int from, int to, int round, int at) {
  return (unsigned char)(from * 31 + to * 17 + round * 7 + at + at / 251);
}

/* Each rank has a place for what each other one puts there. */
static void puts_and_gets(int round) {
  static const int sizes[] = {1, 8, 100, 4096, 17385, 65536, LONGEST};
  MPI_Win win;
  unsigned char* bytes = window((MPI_Aint)ranks * LONGEST, 1, &win);
  unsigned char* own = malloc(LONGEST);
  if (own == NULL) fail("no memory", round);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    MPI_Win_fence(0, win);
    for (int to = 0; to < ranks; ++to) {
      for (int k = 0; k < sizes[i]; ++k) own[k] = byte_of(rank, to, round, k);
      MPI_Put(own, sizes[i], MPI_BYTE, to, (MPI_Aint)rank * LONGEST, sizes[i], MPI_BYTE, win);
      MPI_Win_fence(0, win);
    }
    for (int from = 0; from < ranks; ++from)
      for (int k = 0; k < sizes[i]; ++k)
        if (bytes[(size_t)from * LONGEST + (size_t)k] != byte_of(from, rank, round, k))
          fail("another byte than was put", round);
    for (int of = 0; of < ranks; ++of) {
      memset(own, 0, LONGEST);
      MPI_Get(own, sizes[i], MPI_BYTE, of, (MPI_Aint)rank * LONGEST, sizes[i], MPI_BYTE, win);
      MPI_Win_fence(0, win);
      for (int k = 0; k < sizes[i]; ++k)
        if (own[k] != byte_of(rank, of, round, k)) fail("another byte than stands there", round);
    }
  }
  free(own);
  MPI_Win_free(&win);
}

/* All add to the same numbers of each rank; `size`: of a number. */
static void sums(int round, MPI_Datatype type, int size, const void* one, const void* expected,
                 const char* what) {
  MPI_Win win;
  unsigned char* numbers = window((MPI_Aint)8 * size, size, &win);
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < SUMS; ++i)
    for (int to = 0; to < ranks; ++to)
      MPI_Accumulate(one, 1, type, to, i % 8, 1, type, MPI_SUM, win);
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
  /* The first number got as many as there are rounds with i % 8 == 0. */
  if (memcmp(numbers, expected, (size_t)size) != 0) fail(what, round);
  MPI_Win_unlock(rank, win);
  MPI_Win_free(&win);
}

static void all_sums(int round) {
  const int added = ranks * ((SUMS + 7) / 8);
  const int32_t one32 = 1, sum32 = added;
  const int64_t one64 = (int64_t)1 << 33, sum64 = added * one64;
  const double one = 0.5, sum = added * 0.5;
  sums(round, MPI_INT32_T, sizeof one32, &one32, &sum32, "a wrong sum of 32-bit numbers");
  sums(round, MPI_INT64_T, sizeof one64, &one64, &sum64, "a wrong sum of 64-bit numbers");
  sums(round, MPI_DOUBLE, sizeof one, &one, &sum, "a wrong sum of doubles");
}

/* Each rank draws tickets from rank 0: nobody gets the same, and the tickets are all there. */
static void tickets(int round) {
  MPI_Win win;
  int64_t* counter = window(8, 8, &win);
  int64_t drawn[SUMS], all = 0, mine = 0, one = 1;
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < SUMS; ++i) {
    MPI_Fetch_and_op(&one, &drawn[i], MPI_INT64_T, 0, 0, MPI_SUM, win);
    MPI_Win_flush(0, win);
    if (i > 0 && drawn[i] <= drawn[i - 1]) fail("a ticket that is not later", round);
    mine += drawn[i];
  }
  MPI_Win_unlock_all(win);
  MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  const int64_t count = (int64_t)ranks * SUMS;
  if (all != count * (count - 1) / 2) fail("tickets that are not all there", round);
  if (rank == 0 && *counter != count) fail("a wrong number of tickets", round);
  MPI_Win_free(&win);
}

/* Each rank raises a number by comparing and swapping. */
static void swaps(int round, MPI_Datatype type, int size) {
  MPI_Win win;
  int64_t *number = window(8, size, &win), old = 0, next = 0;
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < SUMS / 4; ++i) {
    int64_t seen = 0;
    for (int done = 0; !done;) {
      next = seen + 1;
      old = 0;
      MPI_Compare_and_swap(&next, &seen, &old, type, 0, 0, win);
      MPI_Win_flush(0, win);
      done = old == seen;
      seen = old;
    }
  }
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0 && *number != (int64_t)ranks * (SUMS / 4)) fail("a swap is lost", round);
  MPI_Win_free(&win);
}

/* Reads, adds, writes: right if nobody else has the lock meanwhile. */
static void locks(int round) {
  MPI_Win win;
  int32_t *number = window(4, 4, &win), value = 0;
  for (int i = 0; i < SUMS / 4; ++i) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Get(&value, 1, MPI_INT32_T, 0, 0, 1, MPI_INT32_T, win);
    MPI_Win_flush(0, win);
    ++value;
    MPI_Put(&value, 1, MPI_INT32_T, 0, 0, 1, MPI_INT32_T, win);
    MPI_Win_unlock(0, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
  if (rank == 0 && *number != ranks * (SUMS / 4)) fail("two ranks have had the lock", round);
  MPI_Win_unlock(rank, win);
  MPI_Win_free(&win);
}

/* Each rank adds to a number of rank 0, and puts and gets its own bytes there. */
static void access_for_ever(void) {
  MPI_Win win;
  unsigned char* own = malloc(LONGEST);
  unsigned char* got = malloc(LONGEST);
  const MPI_Aint place = 8 + (MPI_Aint)rank * LONGEST;
  const int64_t one = 1;
  if (own == NULL || got == NULL) fail("no memory", 0);
  window(8 + (MPI_Aint)ranks * LONGEST, 1, &win);
  MPI_Win_lock_all(0, win);
  if (rank == 0) puts("it runs");
  fflush(stdout);
  for (int round = 0;; round = (round + 1) % 1000) {
    int64_t before = 0;
    for (int k = 0; k < LONGEST; ++k) own[k] = byte_of(rank, 0, round, k);
    MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, 0, MPI_SUM, win);
    MPI_Put(own, LONGEST, MPI_BYTE, 0, place, LONGEST, MPI_BYTE, win);
    MPI_Win_flush(0, win);
    MPI_Get(got, LONGEST, MPI_BYTE, 0, place, LONGEST, MPI_BYTE, win);
    MPI_Win_flush(0, win);
    if (memcmp(own, got, LONGEST) != 0) fail("another byte than was put", round);
  }
}

/* Most of it are collective operations. */
static void make_windows_for_ever(void) {
  for (int round = 0;; ++round) {
    MPI_Win win;
    window(64, 1, &win);
    MPI_Win_free(&win);
    if (rank == 0 && round == 0) puts("it runs");
    fflush(stdout);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 2 || ranks < 2 || ranks > 8) fail("two to eight ranks, and one argument", 0);
  if (atoi(argv[1]) == -1) access_for_ever();
  if (atoi(argv[1]) < 0) make_windows_for_ever();
  for (int round = 0; round < atoi(argv[1]); ++round) {
    puts_and_gets(round);
    all_sums(round);
    tickets(round);
    swaps(round, MPI_INT64_T, 8);
    swaps(round, MPI_INT32_T, 4);
    locks(round);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  printf("rank %d: all is right\n", rank);
  MPI_Finalize();
  return 0;
}
