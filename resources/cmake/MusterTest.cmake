# SPDX-License-Identifier: Apache-2.0
# muster_add_test(folder/tst_name LINK muster::… LABELS unit … TIMEOUT seconds)
#   One file, one executable, one ctest entry. Tests find the shared data through MUSTER_SHARED and skip without it.
set(MUSTER_SHARED_DIR "${PROJECT_SOURCE_DIR}/../shared" CACHE PATH
    "Folder with data sets, models and goldens for the tests")

function(muster_add_test path)
    cmake_parse_arguments(arg "" "TIMEOUT" "LINK;LABELS;ENVIRONMENT;SOURCES" ${ARGN})
    if(NOT arg_LABELS)
        set(arg_LABELS unit)
    endif()
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 120)
    endif()
    string(REPLACE "/" "_" target "${path}")
    add_executable(${target} "${PROJECT_SOURCE_DIR}/tests/${path}.cpp" ${arg_SOURCES})
    set_target_properties(${target} PROPERTIES AUTOMOC ON CXX_EXTENSIONS OFF
        RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
    target_link_libraries(${target} PRIVATE muster_options ${arg_LINK} Qt6::Test)
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
    # The code of a test is run once: compiling it fast matters more than running it fast.
    target_compile_options(${target} PRIVATE -O0 -g0)
    target_compile_definitions(${target} PRIVATE
        MUSTER_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data"
        MUSTER_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
    add_test(NAME ${path} COMMAND ${target})
    set(environment "QT_QPA_PLATFORM=offscreen" "LC_ALL=C.UTF-8" ${arg_ENVIRONMENT})
    if(NOT DEFINED ENV{MUSTER_SHARED})
        list(APPEND environment "MUSTER_SHARED=${MUSTER_SHARED_DIR}")
    endif()
    set_tests_properties(${path} PROPERTIES
        LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${environment}"
        SKIP_REGULAR_EXPRESSION "^SKIP-ALL")
endfunction()

# muster_add_fuzz_target(name LINK … CORPUS folder): built with -DMUSTER_FUZZ=ON and clang.
function(muster_add_fuzz_target name)
    cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
    if(NOT MUSTER_FUZZ)
        return()
    endif()
    add_executable(fuzz_${name} "${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_${name}.cpp")
    target_link_libraries(fuzz_${name} PRIVATE muster_options ${arg_LINK})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    target_include_directories(fuzz_${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
    set_target_properties(fuzz_${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/fuzz")
endfunction()
