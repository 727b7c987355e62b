#pragma once

/// All of the C++ API.

#include <hips/buffer.hpp>
#include <hips/communicator.hpp>
#include <hips/half.hpp>
#include <hips/last_error.hpp>
#include <hips/memory.hpp>
#include <hips/plan.hpp>
#include <hips/request.hpp>
#include <hips/status.hpp>
#include <hips/topology.hpp>
#include <hips/types.hpp>
#include <hips/user_op.hpp>
