// The LAPACK routines of a library that blas.cpp has opened.
#pragma once

#include <functional>
#include <string>

namespace headrace {

/// Takes the routines from a library whose symbols `find` gives (null: none). False: one is missing, with the reason.
bool resolveLapack(const std::function<void*(const char*)>& find, std::string& reason);

}  // namespace headrace
