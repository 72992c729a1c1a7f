# SPDX-License-Identifier: Apache-2.0
# muster_add_module(): the only way to add a module. See docs/architecture.md, "Modules".

# Bottom to top; a module may use only what stands before it.
set(MUSTER_MODULE_ORDER
    base config wire data tokenizer plan task metrics align store comm model eval launch report foreign run
    ui)
set(MUSTER_QT_MODULES launch run ui)

add_library(muster_options INTERFACE)
target_compile_features(muster_options INTERFACE cxx_std_20)
target_compile_options(muster_options INTERFACE
    -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
    -Wold-style-cast -Wimplicit-fallthrough -Wformat=2)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # gcc 12 sees overlaps and uninitialised members in the standard library's own strings (bugs 105651, 105329).
    target_compile_options(muster_options INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
endif()
if(MUSTER_WERROR)
    target_compile_options(muster_options INTERFACE -Werror)
endif()
if(MUSTER_SANITIZE)
    target_compile_options(muster_options INTERFACE
        -fsanitize=${MUSTER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(muster_options INTERFACE -fsanitize=${MUSTER_SANITIZE})
endif()
if(MUSTER_FUZZ)
    target_compile_options(muster_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Checks each `#include "module/…"` of the sources against what the module declared; runs when a source changes.
function(muster_check_includes target owner folder uses)
    file(GLOB headers CONFIGURE_DEPENDS "${folder}/*.h")
    set(stamp "${CMAKE_CURRENT_BINARY_DIR}/${target}.includes")
    add_custom_command(
        OUTPUT "${stamp}"
        COMMAND "${CMAKE_COMMAND}" "-Downer=${owner}" "-Dfolder=${folder}" "-Duses=${uses}"
                "-Dmodules=${MUSTER_MODULE_ORDER}" "-Dqt=${MUSTER_QT_MODULES}" "-Dstamp=${stamp}"
                -P "${PROJECT_SOURCE_DIR}/resources/cmake/CheckIncludes.cmake"
        DEPENDS ${headers} ${ARGN} "${PROJECT_SOURCE_DIR}/resources/cmake/CheckIncludes.cmake"
        COMMENT "Checking what ${owner} includes"
        VERBATIM)
    add_custom_target(${target}_includes DEPENDS "${stamp}")
    add_dependencies(${target} ${target}_includes)
endfunction()

# muster_add_module(name SOURCES … USES … LIBS … PUBLIC_LIBS …)
#   SOURCES      files of the module's folder
#   USES         other modules, checked against the includes and the order
#   LIBS         outside libraries, private
#   PUBLIC_LIBS  outside libraries whose headers stand in the module's public headers
function(muster_add_module name)
    cmake_parse_arguments(arg "" "VARIANT;FOLDER" "SOURCES;USES;LIBS;PUBLIC_LIBS" ${ARGN})
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "module ${name}: unknown arguments ${arg_UNPARSED_ARGUMENTS}")
    endif()
    list(FIND MUSTER_MODULE_ORDER ${name} place)
    if(place EQUAL -1)
        message(FATAL_ERROR "module ${name} does not stand in MUSTER_MODULE_ORDER")
    endif()
    set(target muster_${name}${arg_VARIANT})
    set(folder "${CMAKE_CURRENT_SOURCE_DIR}")
    if(arg_FOLDER)
        set(folder "${arg_FOLDER}")
    endif()
    foreach(library IN LISTS arg_LIBS arg_PUBLIC_LIBS)
        if(library MATCHES "^Qt6::" AND NOT name IN_LIST MUSTER_QT_MODULES)
            message(FATAL_ERROR "module ${name} may not use ${library}: Qt belongs in ${MUSTER_QT_MODULES}")
        endif()
        if(library MATCHES "^Qt6::(Gui|Widgets|PrintSupport)|QCustomPlot" AND NOT name STREQUAL ui)
            message(FATAL_ERROR "module ${name} may not use ${library}: windows belong in ui")
        endif()
    endforeach()

    list(TRANSFORM arg_SOURCES PREPEND "${folder}/" OUTPUT_VARIABLE sources)
    add_library(${target} STATIC ${sources})
    add_library(muster::${name}${arg_VARIANT} ALIAS ${target})
    target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}/backend")
    target_compile_features(${target} PUBLIC cxx_std_20)
    set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:muster_options> ${arg_LIBS}
                                    PUBLIC ${arg_PUBLIC_LIBS} tl::expected)
    foreach(used IN LISTS arg_USES)
        list(FIND MUSTER_MODULE_ORDER ${used} usedPlace)
        if(usedPlace EQUAL -1)
            message(FATAL_ERROR "module ${name} uses ${used}, which does not exist")
        elseif(usedPlace GREATER_EQUAL place)
            message(FATAL_ERROR "module ${name} may not use ${used}: it stands above it in the order")
        elseif(NOT TARGET muster_${used})
            message(FATAL_ERROR "module ${name} uses ${used}, which is not built in this configuration")
        endif()
        target_link_libraries(${target} PUBLIC muster::${used})
    endforeach()
    if(name IN_LIST MUSTER_QT_MODULES)
        set_target_properties(${target} PROPERTIES AUTOMOC ON)
        target_compile_definitions(${target} PRIVATE QT_NO_CAST_FROM_ASCII QT_NO_URL_CAST_FROM_STRING)
    endif()
    if(NOT name STREQUAL ui)
        target_compile_definitions(${target} PRIVATE QT_NO_KEYWORDS)
    endif()
    muster_check_includes(${target} ${name} "${folder}" "${arg_USES}" ${sources})
endfunction()
