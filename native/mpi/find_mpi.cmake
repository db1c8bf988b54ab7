# Searches for MPI again if the last search found none, or found files that are gone since. CMake's own module keeps
# "not found" in the cache for good, so it would not find a library that is installed later.

macro(headrace_find_mpi)
  if(NOT DEFINED headrace_looked_for_mpi)
    headrace_forget_missing_mpi()
    find_package(MPI COMPONENTS C QUIET)
    set(HEADRACE_MPI_WAS_FOUND "${MPI_C_FOUND}" CACHE INTERNAL "Whether the last search found MPI")
    set(headrace_looked_for_mpi TRUE)
  endif()
endmacro()

# A value given with -D stays if it names an existing file.
function(headrace_forget_missing_mpi)
  get_cmake_property(names CACHE_VARIABLES)
  list(FILTER names INCLUDE REGEX "^(MPI_|MPIEXEC_)")
  # Files that are gone: the library was removed or replaced.
  set(isGone FALSE)
  foreach(name IN LISTS names)
    foreach(value IN LISTS ${name})
      if(IS_ABSOLUTE "${value}" AND NOT EXISTS "${value}")
        set(isGone TRUE)
      endif()
    endforeach()
  endforeach()
  foreach(name IN LISTS names)
    set(value "${${name}}")
    if(isGone OR (NOT HEADRACE_MPI_WAS_FOUND AND (value STREQUAL "" OR value MATCHES "NOTFOUND$|^FALSE$")))
      unset(${name} CACHE)
    endif()
  endforeach()
endfunction()
