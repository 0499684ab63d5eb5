# SPDX-License-Identifier: MIT
libtessera_la_SOURCES += comm/world.c
libtessera_la_SOURCES += comm/world.h
