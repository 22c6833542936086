/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: ping SECONDS SIZE...
 *        ping SECONDS allreduce
 * Two ranks of MPI. For each size rank 0 prints a line: the size, the median half round trip in
 * microseconds, and the bytes a second of messages in one direction, 16 of them under way. Or any
 * number of ranks: it prints the median microseconds of an Allreduce of 8 bytes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 16
#define MOST_ROUNDS 200000

static int rank;
static double times[MOST_ROUNDS];

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(int rounds) {
  if (rounds == 0) return 0;
  qsort(times, (size_t)rounds, sizeof *times, by_value);
  return times[rounds / 2];
}

static void there_and_back(char* bytes, int size) {
  if (rank == 0) MPI_Send(bytes, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
  MPI_Recv(bytes, size, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(bytes, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

/* Rank 0 decides whether another batch follows. */
static int goes_on(double until) {
  int on = MPI_Wtime() < until;
  MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return on;
}

static double half_round_trip(char* bytes, int size, double seconds) {
  int rounds = 0;
  for (int i = 0; i < 10; ++i) there_and_back(bytes, size);
  const double until = MPI_Wtime() + seconds;
  while (goes_on(until))
    for (int i = 0; i < 50; ++i) {
      const double from = MPI_Wtime();
      there_and_back(bytes, size);
      if (rounds < MOST_ROUNDS) times[rounds++] = MPI_Wtime() - from;
    }
  return median(rounds) / 2;
}

static double allreduce(double seconds) {
  int rounds = 0;
  double mine = rank, sum = 0;
  for (int i = 0; i < 10; ++i) MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const double until = MPI_Wtime() + seconds;
  while (goes_on(until))
    for (int i = 0; i < 50; ++i) {
      const double from = MPI_Wtime();
      MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      if (rounds < MOST_ROUNDS) times[rounds++] = MPI_Wtime() - from;
    }
  return median(rounds);
}

static double stream(char* bytes, int size, double seconds) {
  MPI_Request requests[WINDOW];
  char answer = 0;
  double sent = 0;
  const double from = MPI_Wtime();
  while (goes_on(from + seconds))
    for (int batch = 0; batch < 4; ++batch, sent += (double)size * WINDOW) {
      for (int i = 0; i < WINDOW; ++i) {
        char* const place = bytes + (size_t)i * (size_t)size;
        if (rank == 0)
          MPI_Isend(place, size, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[i]);
        else
          MPI_Irecv(place, size, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[i]);
      }
      MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
      if (rank == 0)
        MPI_Recv(&answer, 1, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      else
        MPI_Send(&answer, 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    }
  return sent / (MPI_Wtime() - from);
}

int main(int argc, char** argv) {
  int ranks = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const double seconds = argc < 3 ? 0 : atof(argv[1]);
  if (argc == 3 && strcmp(argv[2], "allreduce") == 0) {
    const double took = allreduce(seconds);
    if (rank == 0) printf("allreduce %.3f\n", took * 1e6);
    MPI_Finalize();
    return 0;
  }
  if (ranks != 2 || argc < 3) MPI_Abort(MPI_COMM_WORLD, 2);
  for (int i = 2; i < argc; ++i) {
    const int size = atoi(argv[i]);
    char* const bytes = malloc((size_t)size * WINDOW + 1);
    if (size <= 0 || bytes == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
    memset(bytes, 1, (size_t)size * WINDOW);
    const double half = half_round_trip(bytes, size, seconds);
    const double rate = stream(bytes, size, seconds);
    if (rank == 0) printf("%d %.3f %.0f\n", size, half * 1e6, rate);
    free(bytes);
  }
  MPI_Finalize();
  return 0;
}
