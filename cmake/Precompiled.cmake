# Headers that are compiled once for many files. A build from nothing takes half the processor time with them. A change of one of them
# compiles all these files again, so that somebody who edits them does without: `./dev build` of a new folder leaves them out, `./dev demo`
# and `./dev test` take them. ccache sees an object of a precompiled header as another one than the same object without it.

include_guard()

option(PENSTOCK_PRECOMPILE "Compile the headers that most files include once: for a build from nothing" OFF)
if(NOT PENSTOCK_PRECOMPILE)
  return()
endif()

set(standard_headers <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstdint> <cstring> <deque> <functional> <limits>
  <map> <memory> <mutex> <numeric> <optional> <set> <span> <string> <string_view> <thread> <tuple> <type_traits> <unordered_map>
  <unordered_set> <utility> <variant> <vector>)
set(absl_headers "absl/container/flat_hash_map.h" "absl/container/inlined_vector.h" "absl/functional/function_ref.h" "absl/status/status.h"
  "absl/status/statusor.h" "absl/strings/str_cat.h" "absl/strings/str_join.h" "absl/time/time.h" "absl/types/span.h")

# penstock_precompile(TARGET header...): the standard library's, Abseil's and these headers, compiled once for this target.
function(penstock_precompile target)
  set(headers)
  foreach(header ${absl_headers} ${ARGN})
    list(APPEND headers "<${header}>")
  endforeach()
  target_precompile_headers(${target} PRIVATE ${standard_headers} ${headers})
endfunction()

# penstock_precompiled(TARGET FROM): this target takes those of another, which is compiled by the same options.
function(penstock_precompiled target from)
  if(TARGET ${target})
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
endfunction()

# One set of the headers above alone, one for expressions and their functions, one for the engine and the ops, one for the service.
penstock_precompile(penstock_base)
foreach(target penstock_ring penstock_io penstock_codec penstock_text penstock_samples penstock_client_static penstock_ctl_data penstock_ctl_batches
    penstock_ctl_top penstock_inspect penstock_helpers)
  penstock_precompiled(${target} penstock_base)
endforeach()
penstock_precompile(penstock_expr "server/expr/arguments.h" "server/expr/function.h")
penstock_precompiled(penstock_functions penstock_expr)
penstock_precompiled(penstock_image penstock_expr)
penstock_precompile(penstock_engine "penstock/v1/pipeline.pb.h" "server/engine/plan/op_registry.h")
penstock_precompiled(penstock_ops penstock_engine)
penstock_precompiled(penstock_python_workers penstock_engine)
penstock_precompile(penstock_service "penstock/v1/control.pb.h" "penstock/v1/pipeline.pb.h" "server/engine/plan/op_registry.h")

# penstock_tests_precompiled(TARGET DEPENDENCIES header...): a set for programs of tests. It is a target of its own, since whoever takes a set
# waits for all of the target that it is of.
function(penstock_tests_precompiled target dependencies)
  file(GENERATE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${target}.cc" CONTENT "")
  add_library(${target} OBJECT EXCLUDE_FROM_ALL "${CMAKE_CURRENT_BINARY_DIR}/${target}.cc")
  target_link_libraries(${target} PRIVATE penstock_test_main ${dependencies})
  # As the objects of a program are compiled.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIE)
  penstock_precompile(${target} ${ARGN})
endfunction()

# And two for their tests. tests_new_op is left out: it has messages of its own.
if(PENSTOCK_TESTS)
  penstock_tests_precompiled(tests_expr_precompiled "penstock_expr;penstock_functions" "tests/support/catch.h" "server/expr/function.h")
  penstock_tests_precompiled(tests_engine_precompiled "penstock_test_pipeline;penstock_functions;penstock_ops" "tests/support/catch.h"
    "penstock/v1/pipeline.pb.h" "server/engine/plan/op_registry.h" "tests/support/pipeline.h")
  foreach(target tests_expr tests_functions_image tests_functions_random)
    penstock_precompiled(${target} tests_expr_precompiled)
  endforeach()
  foreach(target tests_engine tests_ops tests_service)
    penstock_precompiled(${target} tests_engine_precompiled)
  endforeach()
endif()
