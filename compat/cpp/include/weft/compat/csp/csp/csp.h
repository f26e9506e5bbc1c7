// C++CSP programs include a header of this name.
#pragma once
#include "../../csp.hpp"
