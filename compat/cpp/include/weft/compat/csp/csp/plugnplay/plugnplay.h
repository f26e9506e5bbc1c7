// C++CSP programs include this name.
#pragma once
#include "../../../csp_plugnplay.hpp"
