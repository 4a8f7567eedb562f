// provisional
#pragma once
