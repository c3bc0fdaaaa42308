"""Why a gradient is wrong."""
