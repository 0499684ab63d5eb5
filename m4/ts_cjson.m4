# SPDX-License-Identifier: MIT
# TS_CJSON: cJSON, behind runtime/json.h.
AC_DEFUN([TS_CJSON], [
  TS_PACKAGE([CJSON], [cjson], [libcjson], [libcjson-dev], [cJSON])
  TS_LINKS([CJSON], [cJSON.h], [cJSON_Delete(0);], [libcjson-dev], [cJSON])
])
