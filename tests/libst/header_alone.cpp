// SPDX-License-Identifier: BSD-3-Clause
#include "tests/libst/header_alone.c"
