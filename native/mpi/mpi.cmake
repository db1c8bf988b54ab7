# The message layer: one addon per MPI library found. `mpi.node` is built with the default library. If both Open MPI
# and MPICH are installed, the other one gets an addon of its own, because their binary interfaces differ.
# The build does not require MPI: without it only headrace.node is built (-DHEADRACE_MPI=OFF tests that path).

set(HEADRACE_MPI_SOURCES
  native/mpi/addon.cpp
  native/mpi/copier.cpp
  native/mpi/deadline.cpp
  native/mpi/gpu_imports.cpp
  native/mpi/gpu_mover.cpp
  native/mpi/gpus.cpp
  native/mpi/imports.cpp
  native/mpi/lane_letters.cpp
  native/mpi/lane_offers.cpp
  native/mpi/lane_rounds.cpp
  native/mpi/lane_server.cpp
  native/mpi/lifeline.cpp
  native/mpi/mailbox.cpp
  native/mpi/raw.cpp
  native/mpi/session.cpp
  native/mpi/session_gpus.cpp
  native/mpi/session_letters.cpp
  native/mpi/session_transfers.cpp
  native/mpi/shared_token.cpp
  native/mpi/world.cpp
  native/mpi/world_open.cpp
  # GPU drivers are found at run time; the message layer needs their tables only.
  native/gpu/cuda/api.cpp
  native/gpu/api.cpp
  native/gpu/hip/api.cpp)

include(${CMAKE_CURRENT_LIST_DIR}/find_mpi.cmake)

function(headrace_mpi_settings target)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/native/mpi)
  # Open MPI's deprecated C++ bindings compile but cannot be loaded from an addon.
  target_compile_definitions(${target} PRIVATE OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)
endfunction()

# An addon from a compiler wrapper, whose `-show` prints the command it would run.
function(headrace_mpi_from_wrapper target wrapper)
  find_program(${target}_WRAPPER ${wrapper})
  if(NOT ${target}_WRAPPER)
    return()
  endif()
  execute_process(COMMAND ${${target}_WRAPPER} -show OUTPUT_VARIABLE shown ERROR_QUIET
    OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(failed)
    return()
  endif()
  separate_arguments(words UNIX_COMMAND "${shown}")
  set(includes "")
  set(links "")
  foreach(word IN LISTS words)
    if(word MATCHES "^-I(.+)")
      list(APPEND includes ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-l(mpi|mpich|pmpi)$" OR word MATCHES "^-L")
      list(APPEND links ${word})
    endif()
  endforeach()
  headrace_addon(${target} ${HEADRACE_MPI_SOURCES})
  headrace_mpi_settings(${target})
  target_include_directories(${target} SYSTEM PRIVATE ${includes})
  target_link_libraries(${target} PRIVATE ${links})
endfunction()

option(HEADRACE_MPI "Build the message layer when MPI is found" ON)
if(HEADRACE_MPI)
  headrace_find_mpi()
  if(MPI_C_FOUND)
    headrace_addon(mpi ${HEADRACE_MPI_SOURCES})
    headrace_mpi_settings(mpi)
    target_include_directories(mpi SYSTEM PRIVATE ${MPI_C_INCLUDE_DIRS})
    target_link_libraries(mpi PRIVATE ${MPI_C_LIBRARIES})
    get_filename_component(default_wrapper "${MPI_C_COMPILER}" REALPATH)
    if(default_wrapper MATCHES "mpich")
      headrace_mpi_from_wrapper(mpi-openmpi mpicc.openmpi)
    else()
      headrace_mpi_from_wrapper(mpi-mpich mpicc.mpich)
    endif()
  else()
    message(STATUS "MPI not found: building without the message layer")
  endif()
endif()
