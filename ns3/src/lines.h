// SPDX-License-Identifier: GPL-2.0-only
//
// Lines of JSON on standard input.

#ifndef TCPSBED_LINES_H
#define TCPSBED_LINES_H

#include "json.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace tcpsbed
{

class Lines
{
  public:
    // The next line; waits for it. Nothing when input has ended.
    std::optional<Json> Next();

    // The next line that is there already.
    std::optional<Json> Poll();

    // Waits for input, at most this long.
    void Wait(int64_t ns);

    bool Ended() const
    {
        return m_ended && m_text.find('\n', m_begin) == std::string::npos;
    }

  private:
    bool Fill();
    std::optional<Json> Take();

    std::string m_text;
    size_t m_begin{0};
    bool m_ended{false};
};

// CLOCK_MONOTONIC in nanoseconds.
int64_t MonotonicNs();

} // namespace tcpsbed

#endif
