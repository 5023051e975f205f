-- Wireshark dissector for the datagrams of tcpsbed: samples with echoes, echo replies, clock exchanges.
--
--   wireshark -X lua_script:tcpsbed.lua packets.pcapng
--
-- Ports 47000 to 47999 are taken without a question; on other ports a datagram is taken if its form is right.
-- The layouts are drawn in crates/tcps-wire/src/{header,echo,reply,clock}.rs.

local HEADER_BYTES, TAG_BYTES, REPLY_BYTES, CLOCK_BYTES = 24, 19, 32, 36
local SAMPLE, REPLY, CLOCK = 0x01, 0xec, 0xcc
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

local function echoes(tree, buffer, at)
    local count = buffer(at, 1):uint()
    tree:add(f.echo_count, buffer(at, 1))
    at = at + 1
    for _ = 1, count do
        local sub = tree:add(tcpsbed, buffer(at, TAG_BYTES), "Echo command")
        at = add(sub, buffer, at, {
            { f.echo_sample, 1 }, { f.echo_target, 2 }, { f.echo_sequence, 4 },
            { f.echo_reply_to, 4 }, { f.echo_injected, 8 },
        })
    end
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

function tcpsbed.dissector(buffer, pinfo, root)
    pinfo.cols.protocol = "tcpsbed"
    local tree = root:add(tcpsbed, buffer())
    local reason = fault(buffer)
    if reason then
        tree:add_proto_expert_info(malformed, reason)
        pinfo.cols.info = "malformed: " .. reason
        return buffer:len()
    end
    local parts = { [SAMPLE] = sample, [REPLY] = reply, [CLOCK] = clock }
    local info = parts[buffer(0, 1):uint()](tree, buffer)
    tree:append_text(", " .. info)
    pinfo.cols.info = info
    return buffer:len()
end

DissectorTable.get("udp.port"):add("47000-47999", tcpsbed)
tcpsbed:register_heuristic("udp", function(buffer, pinfo, root)
    if fault(buffer) then return false end
    tcpsbed.dissector(buffer, pinfo, root)
    return true
end)
