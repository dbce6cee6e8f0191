/* SPDX-License-Identifier: Apache-2.0
 * version.c - the version that configure was given. */
#include "build.h"
#include "strait.h"

const char *strait_version(void)
{
    return PACKAGE_VERSION;
}
