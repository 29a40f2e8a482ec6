// Symbol visibility: everything is hidden but what is marked here.
#pragma once

#define TERCEL_API __attribute__((visibility("default")))
