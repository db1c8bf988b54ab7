# The stub driver libraries and the program that runs the native GPU tests, on the stubs or on real GPUs.
# Included with HEADRACE_STUBS=ON. All results are in build/Release beside the addon, so that they travel with it.
set(stub_output ${CMAKE_BINARY_DIR}/Release)
set(stub_machine
  native/stub/stub_control.cpp
  native/stub/stub_driver.cpp
  native/stub/stub_kernels.cpp
  native/stub/stub_machine.cpp)

function(headrace_stub name)
  add_library(${name} SHARED ${ARGN})
  headrace_settings(${name})
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${stub_output}
    BUILD_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH OFF)
endfunction()

headrace_stub(stub_cuda native/stub/stub_cuda.cpp ${stub_machine})
headrace_stub(stub_hip native/stub/stub_hip.cpp ${stub_machine})
headrace_stub(stub_nvrtc native/stub/stub_nvrtc.cpp)
headrace_stub(stub_blas native/stub/stub_blas.cpp native/kernels/blas_plain.cpp)
target_link_libraries(stub_blas PRIVATE stub_cuda)

add_executable(headrace_gpu_tests
  test/native-gpu/copies.cpp
  test/native-gpu/errors.cpp
  test/native-gpu/graphs.cpp
  test/native-gpu/gpu_machine.cpp
  test/native-gpu/hip.cpp
  test/native-gpu/imports.cpp
  test/native-gpu/marks.cpp
  test/native-gpu/sources.cpp
  test/native-gpu/spinning.cpp
  test/native-gpu/tiles.cpp
  native/mpi/gpu_imports.cpp
  native/mpi/gpus.cpp
  native/mpi/lane_letters.cpp
  native/mpi/lane_offers.cpp
  native/mpi/lane_rounds.cpp
  native/mpi/lane_server.cpp
  native/mpi/mailbox.cpp
  native/test/doubts.cpp
  native/test/lane_plays.cpp
  native/test/play_ends.cpp
  native/test/play_growth.cpp
  native/test/lanes.cpp
  native/test/long_versions.cpp
  native/test/mailboxes.cpp
  native/test/version_ways.cpp
  native/test/main.cpp
  native/test/completion_waiters.cpp
  native/test/script_plays.cpp
  native/test/script_ports.cpp)
headrace_settings(headrace_gpu_tests)
target_link_libraries(headrace_gpu_tests PRIVATE headrace_objects)
target_include_directories(headrace_gpu_tests PRIVATE ${CMAKE_SOURCE_DIR}/native/mpi ${CMAKE_SOURCE_DIR}/native/test)
set_target_properties(headrace_gpu_tests PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${stub_output})

# All targets of this file that can be built here.
add_custom_target(headrace_stubs DEPENDS headrace_gpu_tests stub_cuda stub_hip stub_nvrtc stub_blas)
if(HEADRACE_SANITIZE OR HEADRACE_COVERAGE)
  return()
endif()

# Overhead and bandwidth against loops by hand; the figures are meaningful on real GPUs only.
add_executable(headrace_gpu_bench native/bench/main.cpp)
headrace_settings(headrace_gpu_bench)
target_link_libraries(headrace_gpu_bench PRIVATE headrace_objects)
target_include_directories(headrace_gpu_bench PRIVATE ${CMAKE_SOURCE_DIR}/native/test)
set_target_properties(headrace_gpu_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${stub_output})

# An MPI library that claims to take device pointers.
include(native/mpi/find_mpi.cmake)
headrace_find_mpi()
if(MPI_C_FOUND)
  headrace_stub(stub_mpi_aware native/stub/stub_mpi_aware.cpp)
  target_compile_definitions(stub_mpi_aware PRIVATE OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)
  target_include_directories(stub_mpi_aware SYSTEM PRIVATE ${MPI_C_INCLUDE_DIRS})
else()
  message(STATUS "MPI not found: building without the stub MPI library")
  # Of an MPI library that was removed since.
  file(REMOVE ${stub_output}/libstub_mpi_aware.so)
endif()

add_dependencies(headrace_stubs headrace_gpu_bench)
if(TARGET stub_mpi_aware)
  add_dependencies(headrace_stubs stub_mpi_aware)
endif()
# The message layer whose guards can be switched off.
if(TARGET mpi)
  add_dependencies(headrace_stubs mpi)
else()
  file(REMOVE ${stub_output}/mpi.node)
endif()
