// SPDX-License-Identifier: Apache-2.0
#include "controller_api.h"

namespace muster::cli {

ControllerApi controllerApi()
{
    return {};
}

} // namespace muster::cli
