# SPDX-License-Identifier: MIT
#
# TS_FAISS: nearest neighbours, behind neighbor/faiss_index.h.  Debian ships the C++ library as an
# archive without a .pc file; it uses OpenMP and LAPACK (OpenBLAS has it).  The C++ run time goes
# into LIBS, at the end of every link, so that programs are linked as C.
AC_DEFUN([TS_FAISS], [
  AC_ARG_VAR([FAISS_CFLAGS], [compiler flags for FAISS])
  AC_ARG_VAR([FAISS_LIBS], [linker flags for FAISS])
  AS_IF([test -z "$FAISS_LIBS"], [FAISS_LIBS="-lfaiss -lgomp $CBLAS_LIBS"])
  AC_LANG_PUSH([C++])
  ts_saved_CPPFLAGS=$CPPFLAGS; ts_saved_LIBS=$LIBS
  CPPFLAGS="$CPPFLAGS $FAISS_CFLAGS"; LIBS="$FAISS_LIBS $LIBS"
  AC_MSG_CHECKING([for FAISS])
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <faiss/IndexFlat.h>]],
    [[faiss::IndexFlatL2 index(3); return (int)index.ntotal;]])],
    [ts_faiss_found=yes; AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no]); TS_MISSING([libfaiss-dev], [FAISS])])
  CPPFLAGS=$ts_saved_CPPFLAGS; LIBS="$ts_saved_LIBS -lstdc++"
  AC_LANG_POP([C++])
])
