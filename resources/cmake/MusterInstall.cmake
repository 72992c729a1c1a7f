# SPDX-License-Identifier: Apache-2.0
include(GNUInstallDirs)
if(MUSTER_CONTROLLER)
    # What `muster demo` evaluates; found relative to the program.
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/resources/demo/"
            DESTINATION "${CMAKE_INSTALL_DATADIR}/muster/demo")
endif()
