/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: mpi_programs pingpong ROUNDS | collectives ROUNDS
 * What MPI programs do over the link that the library uses: short messages there and back, or
 * Allreduce and Alltoall of many lengths. All that arrives is checked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 40000 /* numbers for each rank */

static int rank, ranks;
static int given[MOST * 8], got[MOST * 8];

static void fail(const char* what, int round) {
  fprintf(stderr, "rank %d: %s in round %d\n", rank, what, round);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void pingpong(int rounds) {
  int other = 1 - rank, answer = 0;
  for (int round = 0; round < rounds && rank < 2; ++round) {
    if (rank == 0) MPI_Send(&round, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
    MPI_Recv(&answer, 1, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (answer != round) fail("another number than was sent", round);
    if (rank == 1) MPI_Send(&answer, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
  }
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
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
      allreduce(lengths[i], round);
      alltoall(lengths[i], round);
    }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 3 || ranks < 2 || ranks > 8) fail("two to eight ranks, and two arguments", 0);
  if (strcmp(argv[1], "pingpong") == 0)
    pingpong(atoi(argv[2]));
  else
    collectives(atoi(argv[2]));
  MPI_Barrier(MPI_COMM_WORLD);
  printf("rank %d: all is right\n", rank);
  MPI_Finalize();
  return 0;
}
