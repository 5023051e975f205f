-- Wireshark dissector for the datagrams of tcpsbed: samples with echoes, echo replies, clock exchanges, telehaptic
-- packets and reports.
--
--   wireshark -X lua_script:tcpsbed.lua packets.pcapng
--
-- Ports 47000 to 47999 are taken without a question; on other ports a datagram is taken if its form is right, unless it
-- could only be a telehaptic packet, whose form many others have.
-- The layouts are drawn in crates/tcps-wire/src/{header,echo,reply,clock,report,telehaptic}.rs.

local HEADER_BYTES, TAG_BYTES, REPLY_BYTES, CLOCK_BYTES = 24, 19, 32, 36
local SAMPLE, REPLY, CLOCK, REPORT = 0x01, 0xec, 0xcc, 0x81
local REPORT_BYTES, POSITION_BYTES, FRAME_BYTES = 52, 13, 18
local NO_DELAY = 0xffffff
local MEDIA = { [0] = "haptic", [1] = "haptic, audio", [2] = "haptic, video", [3] = "haptic, audio, video" }
local MODES = { [1] = "request", [2] = "response" }
local REPLY_START, CLOCK_START = "ec54434501000000", "cc54434301"

local tcpsbed = Proto("tcpsbed", "tcpsbed")
local f = {
    version = ProtoField.uint8("tcpsbed.version", "Version"),
    flags = ProtoField.uint8("tcpsbed.flags", "Flags", base.HEX),
    flags_echo = ProtoField.bool("tcpsbed.flags.echo", "Echo trailer", 8, nil, 0x01),
    flow = ProtoField.uint16("tcpsbed.flow", "Flow"),
    index = ProtoField.uint32("tcpsbed.index", "Sample"),
    origin = ProtoField.int64("tcpsbed.origin_ns", "Origin time (ns)"),
    length = ProtoField.uint32("tcpsbed.length", "Bytes of the sample"),
    fragment = ProtoField.uint16("tcpsbed.fragment", "Fragment"),
    fragments = ProtoField.uint16("tcpsbed.fragments", "Fragments"),
    offset = ProtoField.uint32("tcpsbed.offset", "Offset in the sample"),
    payload = ProtoField.bytes("tcpsbed.payload", "Payload"),
    echo_count = ProtoField.uint8("tcpsbed.echo.count", "Echo commands"),
    echo_sample = ProtoField.uint8("tcpsbed.echo.sample", "On sample"),
    echo_target = ProtoField.uint16("tcpsbed.echo.target", "Target point"),
    echo_sequence = ProtoField.uint32("tcpsbed.echo.sequence", "Command"),
    echo_reply_to = ProtoField.uint32("tcpsbed.echo.reply_to", "Answer to node"),
    echo_injected = ProtoField.int64("tcpsbed.echo.injected_ns", "Injected (ns)"),
    reply_point = ProtoField.uint16("tcpsbed.reply.point", "Point"),
    reply_flow = ProtoField.uint16("tcpsbed.reply.flow", "Flow"),
    reply_sequence = ProtoField.uint32("tcpsbed.reply.sequence", "Command"),
    reply_injected = ProtoField.int64("tcpsbed.reply.injected_ns", "Injected (ns)"),
    reply_reached = ProtoField.int64("tcpsbed.reply.reached_ns", "Reached (ns)"),
    clock_mode = ProtoField.uint8("tcpsbed.clock.mode", "Mode", base.DEC, MODES),
    clock_sequence = ProtoField.uint32("tcpsbed.clock.sequence", "Exchange"),
    clock_t1 = ProtoField.int64("tcpsbed.clock.t1_ns", "T1, request left (ns)"),
    clock_t2 = ProtoField.int64("tcpsbed.clock.t2_ns", "T2, request arrived (ns)"),
    clock_t3 = ProtoField.int64("tcpsbed.clock.t3_ns", "T3, response left (ns)"),
    report_loss = ProtoField.uint8("tcpsbed.views.loss", "Lost (256ths)"),
    report_jitter = ProtoField.uint32("tcpsbed.views.jitter_us", "Jitter (us)"),
    report_delay = ProtoField.int64("tcpsbed.views.delay_us", "Mean delay (us)"),
    tele_media = ProtoField.uint8("tcpsbed.telehaptic.media", "Media", base.DEC, MEDIA, 0xe0),
    tele_k = ProtoField.uint8("tcpsbed.telehaptic.k", "Fragments", base.DEC, nil, 0x1c),
    tele_repeated = ProtoField.bool("tcpsbed.telehaptic.repeated", "Delay told before", 8, nil, 0x02),
    tele_trailer = ProtoField.bool("tcpsbed.telehaptic.trailer", "Trailer", 8, nil, 0x01),
    tele_delay = ProtoField.uint24("tcpsbed.telehaptic.delay_us", "Notification delay (us)"),
    tele_time = ProtoField.uint32("tcpsbed.telehaptic.time_ms", "Earliest sample (ms)"),
    tele_frame = ProtoField.uint16("tcpsbed.telehaptic.frame", "Frame"),
    tele_bytes = ProtoField.uint16("tcpsbed.telehaptic.bytes", "Bytes here"),
    tele_part = ProtoField.uint8("tcpsbed.telehaptic.part", "Part of the frame"),
    position_sample = ProtoField.uint8("tcpsbed.position.sample", "Place in the packet"),
    position_index = ProtoField.uint32("tcpsbed.position.index", "Sample"),
    position_origin = ProtoField.int64("tcpsbed.position.origin_ns", "Origin time (ns)"),
    start_video = ProtoField.bool("tcpsbed.start.video", "Video", 16, nil, 0x8000),
    start_at = ProtoField.uint16("tcpsbed.start.at", "Place among the bytes", base.DEC, nil, 0x7fff),
    start_index = ProtoField.uint32("tcpsbed.start.index", "Frame"),
    start_length = ProtoField.uint32("tcpsbed.start.length", "Bytes of the frame"),
    start_origin = ProtoField.int64("tcpsbed.start.origin_ns", "Origin time (ns)"),
}
tcpsbed.fields = f
local malformed =
    ProtoExpert.new("tcpsbed.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
tcpsbed.experts = { malformed }

-- Where a fragment's payload begins and how long it is.
local function span(length, fragment, fragments)
    if fragments <= 1 then return 0, length end
    local chunk = math.ceil(length / fragments)
    local offset = math.min(fragment * chunk, length)
    return offset, math.min(chunk, length - offset)
end

-- The same rules as header.rs; a reason if they are broken.
local function sample_fault(buffer)
    if buffer:len() < HEADER_BYTES then return "too short for a header" end
    if buffer(1, 1):uint() > 1 then return "unknown flags" end
    local length, fragment, fragments = buffer(16, 4):uint(), buffer(20, 2):uint(), buffer(22, 2):uint()
    if fragment >= fragments then return "no such fragment" end
    if fragments > 1 and select(2, span(length, fragments - 1, fragments)) == 0 then
        return "more fragments than the sample fills"
    end
    local _, size = span(length, fragment, fragments)
    local rest = buffer:len() - HEADER_BYTES - size
    if rest < 0 then return "too short for its payload" end
    if buffer(1, 1):uint() == 0 then return rest > 0 and "bytes behind the payload" or nil end
    if rest < 1 + TAG_BYTES or rest ~= 1 + TAG_BYTES * buffer(HEADER_BYTES + size, 1):uint() then
        return "echo trailer of a wrong length"
    end
end

local function is_telehaptic(first) return first < 0x80 and math.floor(first / 4) % 8 > 0 end

-- Where the parts of a telehaptic packet lie; nothing if they do not fit.
local function telehaptic_parts(buffer)
    if buffer:len() < 8 then return nil end
    local first = buffer(0, 1):uint()
    local media, k = math.floor(first / 32), math.floor(first / 4) % 8
    local head = 8 + ({ [0] = 0, 5, 5, 10 })[media % 4]
    if media > 3 or buffer:len() < head then return nil end
    local size = 0
    for at = 8, head - 5, 5 do size = size + buffer(at + 2, 2):uint() end
    local trailer, counts = 0, { 0, 0, 0 }
    if first % 2 == 1 then
        if buffer:len() < head + 3 then return nil end
        for i = 1, 3 do counts[i] = buffer(buffer:len() - 4 + i, 1):uint() end
        trailer = counts[1] * TAG_BYTES + counts[2] * POSITION_BYTES + counts[3] * FRAME_BYTES + 3
    end
    local haptic = buffer:len() - head - size - trailer
    if haptic < 0 or haptic % k ~= 0 then return nil end
    return head, haptic + size, counts
end

local function fault(buffer)
    local first = buffer:len() > 0 and buffer(0, 1):uint()
    if first == SAMPLE then return sample_fault(buffer) end
    if first == REPLY then
        local right = buffer:len() == REPLY_BYTES and buffer(0, 8):bytes():tohex(true) == REPLY_START
        return not right and "not a reply" or nil
    end
    if first == CLOCK then
        local right = buffer:len() == CLOCK_BYTES and buffer(0, 5):bytes():tohex(true) == CLOCK_START
        return not right and "not a clock exchange" or nil
    end
    if first == REPORT then
        local right = buffer:len() == REPORT_BYTES and buffer(40, 4):string() == "TCPS"
        return not right and "not a report" or nil
    end
    if first and is_telehaptic(first) then
        return not telehaptic_parts(buffer) and "sizes that do not fit" or nil
    end
    return "unknown first byte"
end

-- Adds fields that follow each other, given as {field, bytes}; the offset behind them.
local function add(tree, buffer, at, fields)
    for _, field in ipairs(fields) do
        tree:add(field[1], buffer(at, field[2]))
        at = at + field[2]
    end
    return at
end

local function tags(tree, buffer, at, count)
    for _ = 1, count do
        local sub = tree:add(tcpsbed, buffer(at, TAG_BYTES), "Echo command")
        at = add(sub, buffer, at, {
            { f.echo_sample, 1 }, { f.echo_target, 2 }, { f.echo_sequence, 4 },
            { f.echo_reply_to, 4 }, { f.echo_injected, 8 },
        })
    end
    return at
end

local function echoes(tree, buffer, at)
    tree:add(f.echo_count, buffer(at, 1))
    tags(tree, buffer, at + 1, buffer(at, 1):uint())
end

local function sample(tree, buffer)
    tree:add(f.version, buffer(0, 1))
    tree:add(f.flags, buffer(1, 1)):add(f.flags_echo, buffer(1, 1))
    add(tree, buffer, 2, {
        { f.flow, 2 }, { f.index, 4 }, { f.origin, 8 }, { f.length, 4 },
        { f.fragment, 2 }, { f.fragments, 2 },
    })
    local fragment, fragments = buffer(20, 2):uint(), buffer(22, 2):uint()
    local offset, size = span(buffer(16, 4):uint(), fragment, fragments)
    tree:add(f.offset, buffer(16, 8), offset):set_generated()
    if size > 0 then tree:add(f.payload, buffer(HEADER_BYTES, size)) end
    local has_echo = buffer(1, 1):uint() == 1
    if has_echo then echoes(tree, buffer, HEADER_BYTES + size) end
    local part = fragments > 1 and string.format(" (%d of %d)", fragment + 1, fragments) or ""
    local tagged = has_echo and " echo" or ""
    return string.format("flow %d sample %d%s%s", buffer(2, 2):uint(), buffer(4, 4):uint(), part, tagged)
end

local function reply(tree, buffer)
    add(tree, buffer, 8, {
        { f.reply_point, 2 }, { f.reply_flow, 2 }, { f.reply_sequence, 4 },
        { f.reply_injected, 8 }, { f.reply_reached, 8 },
    })
    return string.format("echo reply %d from point %d", buffer(12, 4):uint(), buffer(8, 2):uint())
end

local function clock(tree, buffer)
    tree:add(f.clock_mode, buffer(5, 1))
    add(tree, buffer, 8, { { f.clock_sequence, 4 }, { f.clock_t1, 8 }, { f.clock_t2, 8 }, { f.clock_t3, 8 } })
    local mode = buffer(5, 1):uint() == 1 and "request" or "response"
    return string.format("clock %s %d", mode, buffer(8, 4):uint())
end

local function report(tree, buffer)
    tree:add(f.report_loss, buffer(12, 1))
    add(tree, buffer, 20, { { f.report_jitter, 4 } })
    add(tree, buffer, 44, { { f.report_delay, 8 } })
    return string.format("telehaptic report, mean delay %d us", buffer(48, 4):uint())
end

local function telehaptic(tree, buffer)
    local head, payload, counts = telehaptic_parts(buffer)
    for _, field in ipairs({ f.tele_media, f.tele_k, f.tele_repeated, f.tele_trailer }) do
        tree:add(field, buffer(0, 1))
    end
    local delay = tree:add(f.tele_delay, buffer(1, 3))
    if buffer(1, 3):uint() == NO_DELAY then delay:append_text(" (none yet)") end
    tree:add(f.tele_time, buffer(4, 4))
    for at = 8, head - 5, 5 do
        add(tree, buffer, at, { { f.tele_frame, 2 }, { f.tele_bytes, 2 }, { f.tele_part, 1 } })
    end
    if payload > 0 then tree:add(f.payload, buffer(head, payload)) end
    local at = tags(tree, buffer, head + payload, counts[1])
    for _ = 1, counts[2] do
        local sub = tree:add(tcpsbed, buffer(at, POSITION_BYTES), "Position")
        at = add(sub, buffer, at, { { f.position_sample, 1 }, { f.position_index, 4 }, { f.position_origin, 8 } })
    end
    for _ = 1, counts[3] do
        local sub = tree:add(tcpsbed, buffer(at, FRAME_BYTES), "Start of a frame")
        sub:add(f.start_video, buffer(at, 2))
        at = add(sub, buffer, at, {
            { f.start_at, 2 }, { f.start_index, 4 }, { f.start_length, 4 }, { f.start_origin, 8 },
        })
    end
    local k = math.floor(buffer(0, 1):uint() / 4) % 8
    return string.format("telehaptic, %d fragment%s of %d ms", k, k == 1 and "" or "s", buffer(4, 4):uint())
end

function tcpsbed.dissector(buffer, pinfo, root)
    pinfo.cols.protocol = "tcpsbed"
    local tree = root:add(tcpsbed, buffer())
    local reason = fault(buffer)
    if reason then
        tree:add_proto_expert_info(malformed, reason)
        pinfo.cols.info = "malformed: " .. reason
        return buffer:len()
    end
    local parts = { [SAMPLE] = sample, [REPLY] = reply, [CLOCK] = clock, [REPORT] = report }
    local info = (parts[buffer(0, 1):uint()] or telehaptic)(tree, buffer)
    tree:append_text(", " .. info)
    pinfo.cols.info = info
    return buffer:len()
end

DissectorTable.get("udp.port"):add("47000-47999", tcpsbed)
tcpsbed:register_heuristic("udp", function(buffer, pinfo, root)
    if buffer:len() > 0 and is_telehaptic(buffer(0, 1):uint()) or fault(buffer) then return false end
    tcpsbed.dissector(buffer, pinfo, root)
    return true
end)
