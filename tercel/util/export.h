// Symbol visibility: symbols are hidden unless marked TERCEL_API.
#pragma once

#define TERCEL_API __attribute__((visibility("default")))
