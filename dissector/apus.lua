-- Wireshark and tshark plug-in for Homa packets of apus and of the Linux kernel module.
--
-- It dissects both wire profiles of docs/spec/wire.md:
--
--   kernel profile   IP protocol 146
--   udp profile      UDP datagrams with a valid header (a heuristic), datagrams of the ports in the preference
--                    "UDP ports", and datagrams selected by "Decode As"
--
-- The request and the response of each RPC are linked. Expert infos flag grants, RESENDs, retransmitted DATA,
-- repeated bytes, gaps, completed messages, refusals and malformed packets. `apus decode` does the same without
-- Wireshark. README.md in this folder describes the installation.
--
-- Invariants:
--   DISSECTOR-1  No byte outside of a packet is read. Missing bytes are reported as malformed or truncated packets,
--                and never as an error of this script.
--   DISSECTOR-2  The dissection of a packet depends only on the packet and on earlier packets. Links to later
--                packets are an exception; they appear in the second pass (Wireshark always, tshark with -2).
--
-- The script runs on Lua 5.2 to 5.4 and therefore uses no bit operators and no integer division.

local VERSION = "0.1.0"
if set_plugin_info then
    set_plugin_info({ version = VERSION, description = "Homa packets of apus and of the Linux kernel module" })
end

local apus = Proto("apus", "Homa message transport (apus, HomaModule)")

-- ---------------------------------------------------------------------------------------------------------
-- Constants of the wire format. Sources: docs/spec/wire.md and udp-profile.md.

local IP_PROTOCOL = 146
local HEADER = 28
local DATA_HEADER = 56
local ACK_ENTRY = 10
local MAX_ACKS = 5
local UDP_VERSION = 1
-- Version of packets of which only the header can be read (docs/spec/sealing.md).
local SEALED_VERSION = 2
local LOW_WATER_UNKNOWN = 0xffffff
local MINUS_ONE = 0xffffffff

local DATA, GRANT, RESEND, RPC_UNKNOWN, BUSY, CUTOFFS, FREEZE, NEED_ACK, ACK =
    0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18

local NAMES = {
    [DATA] = "DATA", [GRANT] = "GRANT", [RESEND] = "RESEND", [RPC_UNKNOWN] = "RPC_UNKNOWN", [BUSY] = "BUSY",
    [CUTOFFS] = "CUTOFFS", [FREEZE] = "FREEZE", [NEED_ACK] = "NEED_ACK", [ACK] = "ACK",
}

-- Types of packets of handshakes, which only sealed endpoints send.
local SEAL_NAMES = {
    [0x20] = "HELLO", [0x21] = "FINISH", [0x22] = "READY", [0x23] = "RETRY", [0x24] = "NO_KEY", [0x25] = "FAILED",
}

-- Minimum length of a packet of each type, in bytes.
local LENGTHS = {
    [DATA] = DATA_HEADER, [GRANT] = 33, [RESEND] = 37, [RPC_UNKNOWN] = HEADER, [BUSY] = HEADER,
    [CUTOFFS] = 62, [FREEZE] = HEADER, [NEED_ACK] = HEADER, [ACK] = 80,
}

-- Length of a RESEND of the stripped module in the upstream kernel, which has no priority level.
local BRIEF_RESEND = HEADER + 8

local REFUSALS = {
    [1] = "overloaded", [2] = "too large", [3] = "not serving", [4] = "shutting down", [5] = "abandoned",
    [6] = "client too old", [7] = "response too large",
}

-- Maximum number of separate byte ranges stored per message. Rationale: usual messages have one or two gaps; more
-- are found only in captures made to consume the reader's time.
local MAX_RANGES = 1000

local function min_len(kind, profile)
    if kind == ACK and profile == "udp" then return HEADER + 2 end
    if kind == RESEND and profile == "kernel" then return BRIEF_RESEND end
    return LENGTHS[kind]
end

-- Returns the name of the outdated kernel module layout that the packet has (WIRE-27), or nil. Such packets are not
-- dissected.
local function older_layout(tvb, length, kind)
    if kind == 0 and NAMES[tvb(13, 1):uint()] then
        return "layout of a Homa module from before July 2024 (type in byte 13)"
    end
    local has_long_acks = kind == ACK and length == HEADER + 2 + MAX_ACKS * 12
    if kind == DATA and length >= DATA_HEADER and tvb:len() >= 52 then
        has_long_acks = tvb(49, 3):uint() ~= 0
    end
    return has_long_acks and "layout of a Homa module from before December 2024 (acks of 12 bytes)" or nil
end

-- ---------------------------------------------------------------------------------------------------------
-- Fields

local f = {
    words = ProtoField.string("apus.words", "Words"),
    profile = ProtoField.string("apus.profile", "Profile"),
    srcport = ProtoField.uint16("apus.srcport", "Source port"),
    dstport = ProtoField.uint16("apus.dstport", "Destination port"),
    port = ProtoField.uint16("apus.port", "Source or destination port"),
    sequence = ProtoField.uint32("apus.sequence", "Sequence"),
    type = ProtoField.uint8("apus.type", "Type", base.HEX, NAMES),
    doff = ProtoField.uint8("apus.doff", "Header words", base.DEC, nil, 0xf0),
    sender_id = ProtoField.uint64("apus.sender_id", "Sender's id"),
    rpc = ProtoField.uint64("apus.rpc", "RPC"),
    sender = ProtoField.string("apus.sender", "Sender"),

    kernel_ack = ProtoField.bytes("apus.kernel.ack", "Unused"),
    kernel_flags = ProtoField.uint8("apus.kernel.flags", "TCP flags", base.HEX),
    kernel_window = ProtoField.uint16("apus.kernel.window", "Window"),
    kernel_checksum = ProtoField.uint16("apus.kernel.checksum", "Checksum (not verified)", base.HEX),
    kernel_urgent = ProtoField.uint16("apus.kernel.urgent", "Urgent", base.HEX),

    low_water = ProtoField.uint24("apus.low_water", "Low-water mark: oldest live id, in steps of 2 below"),
    version = ProtoField.uint8("apus.version", "Version", base.DEC, nil, 0xf0),
    number = ProtoField.uint64("apus.number", "Packet number of a sealed packet"),
    phase = ProtoField.uint8("apus.phase", "Phase of the key of a sealed packet", base.DEC, nil, 0x01),
    flags = ProtoField.uint8("apus.flags", "Flags", base.HEX, nil, 0x0f),
    flag_session = ProtoField.bool("apus.flags.session", "Session", 8, nil, 0x01),
    flag_confirm = ProtoField.bool("apus.flags.confirm", "Confirm", 8, nil, 0x02),
    flag_finished = ProtoField.bool("apus.flags.finished", "Finished", 8, nil, 0x04),
    flag_refused = ProtoField.bool("apus.flags.refused", "Refused", 8, nil, 0x08),
    incarnation = ProtoField.uint32("apus.incarnation", "Incarnation of the client", base.HEX),
    session = ProtoField.uint64("apus.session", "Session", base.HEX),
    claim = ProtoField.uint24("apus.claim", "Claim for which the session was offered", base.HEX),
    features = ProtoField.uint16("apus.features", "Features of the sender", base.HEX),
    feature_empty = ProtoField.bool("apus.features.empty", "Takes empty messages", 16, nil, 0x0001),
    feature_long = ProtoField.bool("apus.features.long_sessions", "Sessions of 48 bits", 16, nil, 0x0002),
    sprayable = ProtoField.bool("apus.sprayable", "Takes DATA from other ports", 8, nil, 0x04),
    sprayed = ProtoField.bool("apus.sprayed", "Left from another port", 8, nil, 0x08),
    refusal = ProtoField.uint32("apus.refusal", "Reason of the refusal", base.DEC, REFUSALS),

    length = ProtoField.uint32("apus.length", "Message length"),
    incoming = ProtoField.uint32("apus.incoming", "Incoming (bytes that may arrive without further grants)"),
    cutoff_version = ProtoField.uint16("apus.cutoff_version", "Version of the cutoffs used"),
    retransmit = ProtoField.bool("apus.retransmit", "Retransmit"),
    response_limit = ProtoField.uint32("apus.response_limit", "Response limit (bytes that may leave without a GRANT, rounded down)"),
    waiting = ProtoField.uint32("apus.waiting", "Waiting (bytes that wait at the sender, rounded down)"),
    pad = ProtoField.bytes("apus.pad", "Padding"),
    segment_offset = ProtoField.int32("apus.segment_offset", "Offset in the segment header"),
    offset = ProtoField.uint32("apus.offset", "Offset"),
    data = ProtoField.bytes("apus.data", "Data"),
    data_len = ProtoField.uint32("apus.data.len", "Data length"),

    grant_offset = ProtoField.uint32("apus.grant.offset", "Granted up to"),
    grant_priority = ProtoField.uint8("apus.grant.priority", "Level"),
    grant_new = ProtoField.uint32("apus.grant.new", "Newly granted"),
    resend_offset = ProtoField.uint32("apus.resend.offset", "Missing from"),
    resend_length = ProtoField.int32("apus.resend.length", "Missing bytes (-1: all that was sent)"),
    resend_priority = ProtoField.uint8("apus.resend.priority", "Level"),
    cutoff = ProtoField.uint32("apus.cutoffs.length", "Longest message"),
    cutoffs_version = ProtoField.uint16("apus.cutoffs.version", "Version"),
    room = ProtoField.uint32("apus.cutoffs.room", "Room for unscheduled bytes"),
    ack_count = ProtoField.uint16("apus.ack.count", "Entries"),
    ack_rpc = ProtoField.uint64("apus.ack.rpc", "Acknowledged RPC"),
    ack_port = ProtoField.uint16("apus.ack.port", "Its server's port"),

    request_in = ProtoField.framenum("apus.request_in", "Request begins in", base.NONE, frametype.REQUEST),
    response_in = ProtoField.framenum("apus.response_in", "Response begins in", base.NONE, frametype.RESPONSE),
    complete_in = ProtoField.framenum("apus.complete_in", "Message is complete in", base.NONE),
    resend_in = ProtoField.framenum("apus.resend_in", "RESEND in", base.NONE),
    acked_in = ProtoField.framenum("apus.acked_in", "Acknowledged in", base.NONE, frametype.ACK),
    refused_in = ProtoField.framenum("apus.refused_in", "Refused in", base.NONE),
    response_time = ProtoField.relative_time("apus.response_time", "Time from the request to the response"),
    completion_time = ProtoField.relative_time("apus.completion_time", "Time from the request to the end of the response"),
    seen = ProtoField.uint32("apus.seen", "Bytes of the message seen so far"),
    repeated = ProtoField.uint32("apus.repeated", "Bytes seen before"),
    gap = ProtoField.uint32("apus.gap", "Bytes before this packet not seen yet"),
    merged = ProtoField.uint32("apus.merged", "Packets in this datagram"),
}
apus.fields = f

local e = {
    malformed = ProtoExpert.new("apus.malformed", "Malformed packet", expert.group.MALFORMED, expert.severity.ERROR),
    cut = ProtoExpert.new("apus.cut", "Cut short in the capture", expert.group.UNDECODED, expert.severity.NOTE),
    retransmitted = ProtoExpert.new("apus.retransmitted", "Retransmitted DATA", expert.group.SEQUENCE, expert.severity.NOTE),
    repeats = ProtoExpert.new("apus.repeats", "Bytes seen before", expert.group.SEQUENCE, expert.severity.NOTE),
    hole = ProtoExpert.new("apus.hole", "Gap in the message", expert.group.SEQUENCE, expert.severity.WARN),
    beyond = ProtoExpert.new("apus.beyond_grant", "Starts beyond what was granted", expert.group.SEQUENCE, expert.severity.WARN),
    changed = ProtoExpert.new("apus.length_changed", "Message length differs from earlier packets", expert.group.PROTOCOL, expert.severity.WARN),
    complete = ProtoExpert.new("apus.complete", "Message is complete", expert.group.SEQUENCE, expert.severity.CHAT),
    grant = ProtoExpert.new("apus.grant", "Grant", expert.group.SEQUENCE, expert.severity.CHAT),
    resend = ProtoExpert.new("apus.resend", "RESEND", expert.group.SEQUENCE, expert.severity.NOTE),
    unknown = ProtoExpert.new("apus.unknown", "The RPC is unknown", expert.group.RESPONSE_CODE, expert.severity.NOTE),
    refused = ProtoExpert.new("apus.refused", "The request is refused", expert.group.RESPONSE_CODE, expert.severity.WARN),
}
apus.experts = { e.malformed, e.cut, e.retransmitted, e.repeats, e.hole, e.beyond, e.changed, e.complete, e.grant,
    e.resend, e.unknown, e.refused }

apus.prefs.ports = Pref.range("UDP ports", "", "UDP ports whose datagrams are dissected as apus even without a valid header", 65535)

-- ---------------------------------------------------------------------------------------------------------
-- State: RPCs by addresses and id; the notes on each frame's packets, made in the first pass; and the first frame of
-- the udp profile between each pair of addresses.

local rpcs, notes_by_frame, first_frame

function apus.init()
    rpcs, notes_by_frame, first_frame = {}, {}, {}
end

-- Returns the state of a request or a response.
local function new_message()
    return { ranges = {}, seen = 0, highest = 0, limit = 0 }
end

-- Returns the RPC with that id between these addresses; creates it if there is none. In the kernel profile ids are
-- unique per client host, and acks do not contain the client's port.
local function rpc_of(profile, client, client_port, server, server_port, id)
    if profile == "kernel" then client_port = 0 end
    local key = table.concat({ profile, client, client_port, server, server_port, id }, " ")
    local rpc = rpcs[key]
    if not rpc then
        rpc = { request = new_message(), response = new_message() }
        rpcs[key] = rpc
    end
    return rpc
end

-- Adds a range of bytes to a message. Returns the number of bytes that earlier packets contained.
local function add_range(message, from, to)
    local merged, before, new_from, new_to, placed = {}, 0, from, to, false
    for _, range in ipairs(message.ranges) do
        if range[2] < from then
            merged[#merged + 1] = range
        elseif range[1] > to then
            if not placed then
                merged[#merged + 1] = { new_from, new_to }
                placed = true
            end
            merged[#merged + 1] = range
        else
            before = before + math.max(0, math.min(to, range[2]) - math.max(from, range[1]))
            new_from, new_to = math.min(new_from, range[1]), math.max(new_to, range[2])
        end
    end
    if not placed then merged[#merged + 1] = { new_from, new_to } end
    message.seen = message.seen + (to - from) - before
    if #merged <= MAX_RANGES then message.ranges = merged end
    return before
end

-- Records a DATA packet of a message and fills its note.
local function observe_data(packet, message, rpc, frame, time, note)
    if message.length and message.length ~= packet.length then
        note.length_was = message.length
        return
    end
    message.length = packet.length
    if not message.first then message.first, message.first_time = frame, time end
    message.limit = math.max(message.limit, math.min(packet.incoming, packet.length))
    if packet.offset >= message.limit and packet.length > 0 then note.beyond = packet.offset - message.limit end
    if packet.offset > message.highest then note.gap = packet.offset - message.highest end
    local stop = packet.offset + packet.data_len
    local before = packet.length > 0 and add_range(message, packet.offset, stop) or 0
    message.highest = math.max(message.highest, stop)
    if before > 0 then note.repeated = before end
    note.seen = message.seen
    if packet.retransmit and message.resend then
        note.resend_in, note.resend_time = message.resend, time - message.resend_time
    end
    if message.seen == message.length and not message.complete then
        message.complete = frame
        note.completes = true
        if message == rpc.response and rpc.request.first then
            note.completion_time = time - rpc.request.first_time
        end
    end
    if message == rpc.response and message.first == frame and not message.answered and rpc.request.first then
        message.answered = true
        note.response_time = time - rpc.request.first_time
    end
end

-- Records a GRANT for a message and fills its note.
local function observe_grant(packet, message, note)
    local limit = packet.grant_offset
    if message.length then limit = math.min(limit, message.length) end
    note.grant_new = math.max(0, limit - message.limit)
    note.length = message.length
    message.limit = math.max(message.limit, limit)
end

-- Records a RESEND for a message and fills its note.
local function observe_resend(packet, message, frame, time, note)
    message.resend, message.resend_time = frame, time
    note.length = message.length
    if not packet.everything then
        local limit = packet.resend_offset + packet.resend_length
        if message.length then limit = math.min(limit, message.length) end
        message.limit = math.max(message.limit, limit)
    end
end

-- Records a packet in the first pass and returns its note.
local function observe(packet, frame, time)
    local client, server = packet.from, packet.to
    local client_port, server_port = packet.from_port, packet.to_port
    if not packet.by_client then
        client, server, client_port, server_port = server, client, server_port, client_port
    end
    local rpc = rpc_of(packet.profile, client, client_port, server, server_port, packet.id)
    local note = { rpc = rpc }
    local outgoing = packet.by_client and rpc.request or rpc.response
    local incoming = packet.by_client and rpc.response or rpc.request
    note.message = packet.kind == DATA and outgoing or incoming
    if packet.kind == DATA then
        observe_data(packet, outgoing, rpc, frame, time, note)
    elseif packet.kind == GRANT then
        observe_grant(packet, incoming, note)
    elseif packet.kind == RESEND then
        observe_resend(packet, incoming, frame, time, note)
    elseif packet.kind == ACK then
        rpc.acked = rpc.acked or frame
    elseif packet.kind == RPC_UNKNOWN and (packet.refused or packet.finished) then
        rpc.refused = frame
    end
    -- Clients send acks; the acknowledged RPC's server has the destination address.
    for _, ack in ipairs(packet.acks) do
        local acked = rpc_of(packet.profile, packet.from, packet.from_port, packet.to, ack.port, ack.id)
        acked.acked = acked.acked or frame
    end
    return note
end

-- ---------------------------------------------------------------------------------------------------------
-- Parsing

-- Returns the even id of an RPC, which client and server share.
local function client_id(range)
    local id = range:uint64()
    return id:band(UInt64.new(0xfffffffe, 0xffffffff))
end

-- Returns the bytes that a byte of DATA stands for, rounded down (WIRE-34, WIRE-35).
local function coded_bytes(byte)
    local code = math.max(byte - 1, 0)
    local shift = math.max(math.floor(code / 8) - 1, 0)
    return math.min((code - shift * 8) * 2 ^ (shift + 6), MINUS_ONE)
end

-- Whether a byte has the bit with this value.
local function has_bit(byte, value)
    return math.floor(byte / value) % 2 == 1
end

-- The marks of the low nibble in DATA that left from another port, and in GRANTs whose sender takes it (WIRE-36).
local SPRAYED, SPRAYABLE = 8, 4

-- With a session of 48 bits, the low nibble has the features of the sender (WIRE-33), of which two are known, and a mark.
local function valid_doff(kind, doff, long)
    local others = long and doff % 4 or 0
    local mark = kind == DATA and SPRAYED or kind == GRANT and SPRAYABLE
    if long and mark and has_bit(doff, mark) then others = others + mark end
    return doff - others == (kind == DATA and 0xe0 or 0x50)
end

-- Returns whether the header at `at` has a session of 48 bits.
local function has_long_session(tvb, at)
    return tvb(at + 12, 1):bitfield(6, 1) == 1 and tvb(at + 13, 1):bitfield(7, 1) == 1
end

-- Returns the port from which the sender of the packet at `at` would be known: that of its header if it is sprayed.
local function own_port(tvb, at, from_port)
    if tvb:len() < at + HEADER or tvb(at + 11, 1):uint() ~= DATA then return from_port end
    local sealed = tvb(at + 13, 1):bitfield(0, 4) == SEALED_VERSION
    local sprayed = has_bit(tvb(at + 12, 1):uint(), SPRAYED) and tvb(at + 12, 1):bitfield(6, 1) == 1
    return sprayed and (sealed or has_long_session(tvb, at)) and tvb(at, 2):uint() or from_port
end

-- Returns whether the 28 bytes at `at` are a valid header of the udp profile with these ports.
local function looks_like_header(tvb, at, from_port, to_port)
    if tvb:len() < at + HEADER then return false end
    local kind = tvb(at + 11, 1):uint()
    from_port = own_port(tvb, at, from_port)
    if tvb(at + 13, 1):bitfield(0, 4) == SEALED_VERSION then
        return (NAMES[kind] or SEAL_NAMES[kind]) ~= nil
            and tvb(at, 2):uint() == from_port and tvb(at + 2, 2):uint() == to_port
    end
    return NAMES[kind] ~= nil
        and tvb(at, 2):uint() == from_port and tvb(at + 2, 2):uint() == to_port
        and valid_doff(kind, tvb(at + 12, 1):uint(), has_long_session(tvb, at))
        and tvb(at + 13, 1):bitfield(0, 4) == UDP_VERSION
        and (has_long_session(tvb, at) or tvb(at + 18, 1):uint() == 0)
end

-- Returns the size of the packet of the udp profile that begins at `at`, as its header says.
local function announced_len(tvb, at)
    if tvb:len() >= at + HEADER and tvb(at + 13, 1):bitfield(0, 4) == SEALED_VERSION then return nil end
    local kind = tvb(at + 11, 1):uint()
    local need = min_len(kind, "udp")
    if tvb:len() < at + need then return nil end
    if kind == DATA then
        local offset = tvb(at + 52, 4):uint()
        if offset == MINUS_ONE then offset = tvb(at + 4, 4):uint() end
        local length = tvb(at + 28, 4):uint()
        return length >= offset and DATA_HEADER + length - offset or nil
    elseif kind == ACK then
        return HEADER + 2 + tvb(at + 28, 2):uint() * ACK_ENTRY
    end
    return need
end

-- Returns where the packets end in a datagram whose segments have `size` bytes: several packets of any size may follow
-- each other in one (WIRE-29).
local function packet_ends(tvb, size, from_port, to_port)
    local have, length, ends, start = tvb:len(), tvb:reported_len(), {}, 0
    while start < have do
        local segment_end = math.min(length, (math.floor(start / size) + 1) * size)
        local announced = looks_like_header(tvb, start, from_port, to_port) and announced_len(tvb, start)
        local stop = announced and start + announced or segment_end
        if stop >= segment_end or not looks_like_header(tvb, stop, from_port, to_port) then stop = segment_end end
        ends[#ends + 1], start = stop, stop
    end
    return ends
end

-- Returns the size of the packets in a datagram. Packets of equal size that are sent or received in one call
-- (UDP_SEGMENT, UDP_GRO) are one datagram in a capture taken on the host. No field contains their size, but a header
-- begins at each multiple of it.
local function packet_size(tvb, from_port, to_port)
    local have = tvb:len()
    local bytes = tvb:raw(0, have)
    local ports = bytes:sub(1, 4)
    local at = bytes:find(ports, HEADER + 1, true)
    while at do
        local size, fits = at - 1, true
        for start = size, tvb:reported_len() - 1, size do
            if start >= have then break end
            if not looks_like_header(tvb, start, from_port, to_port) then
                fits = start + HEADER > have and tvb:reported_len() > have
                break
            end
        end
        if fits then return size end
        at = bytes:find(ports, at + 1, true)
    end
    return tvb:reported_len()
end

-- Returns the fields of a packet of `length` bytes, or its violation of the format. `tvb` contains the captured bytes.
local function parse(tvb, length, profile)
    local packet = { profile = profile, acks = {} }
    local have = tvb:len()
    if length < HEADER then
        packet.malformed = string.format("%d bytes, but a header has %d", length, HEADER)
        return packet
    end
    if have < HEADER then
        packet.cut = true
        return packet
    end
    packet.header = true
    packet.kind = tvb(11, 1):uint()
    packet.sport, packet.dport = tvb(0, 2):uint(), tvb(2, 2):uint()
    packet.id = tostring(client_id(tvb(20, 8)))
    packet.by_client = tvb(27, 1):uint() % 2 == 0
    packet.sequence = tvb(4, 4):uint()
    if profile == "udp" then
        local version = tvb(13, 1):bitfield(0, 4)
        if version == SEALED_VERSION then
            packet.sealed, packet.number = true, tvb(14, 6):uint64()
            return packet
        end
        if version ~= UDP_VERSION then
            packet.malformed = string.format("unknown version %d", version)
            return packet
        end
        packet.session = tvb(13, 1):bitfield(7, 1) == 1
        packet.confirm = tvb(13, 1):bitfield(6, 1) == 1
        packet.finished = tvb(13, 1):bitfield(5, 1) == 1
        packet.refused = tvb(13, 1):bitfield(4, 1) == 1
    end
    local older = profile == "kernel" and older_layout(tvb, length, packet.kind)
    if older then
        packet.malformed = older .. ": the module there must be renewed"
        return packet
    end
    if not NAMES[packet.kind] then
        packet.malformed = string.format("unknown packet type 0x%02x", packet.kind)
        return packet
    end
    local need = min_len(packet.kind, profile)
    if length < need then
        packet.malformed = string.format("%d bytes, but a %s packet has at least %d", length, NAMES[packet.kind], need)
        return packet
    end
    if have < need then
        packet.cut = true
        return packet
    end
    packet.whole = true
    if packet.kind == DATA then
        packet.length, packet.incoming = tvb(28, 4):uint(), tvb(32, 4):uint()
        packet.retransmit = tvb(48, 1):uint() ~= 0
        packet.waiting = profile == "udp" and coded_bytes(tvb(49, 1):uint()) or 0
        packet.response_limit = profile == "udp" and coded_bytes(tvb(50, 1):uint()) or 0
        packet.offset = tvb(52, 4):uint()
        if packet.offset == MINUS_ONE then packet.offset = packet.sequence end
        packet.data_len = length - DATA_HEADER
        if tvb(36, 8):uint64() ~= UInt64.new(0, 0) then
            packet.acks[1] = { id = tostring(client_id(tvb(36, 8))), port = tvb(44, 2):uint(), at = 36 }
        end
        local stop = packet.offset + packet.data_len
        if packet.length == 0 and profile == "kernel" then
            packet.malformed = "message length is zero in the kernel profile"
        elseif packet.data_len == 0 and packet.length > 0 then
            packet.malformed = "DATA packet without data"
        elseif stop > packet.length then
            packet.malformed = string.format("data ends at %.0f in a message of %.0f bytes", stop, packet.length)
        end
    elseif packet.kind == GRANT then
        packet.grant_offset, packet.priority = tvb(28, 4):uint(), tvb(32, 1):uint()
    elseif packet.kind == RESEND then
        packet.resend_offset, packet.resend_length = tvb(28, 4):uint(), tvb(32, 4):uint()
        -- The second form is that of older modules.
        packet.everything = packet.resend_length == MINUS_ONE or packet.resend_offset == 0 and packet.resend_length == 0
        -- The stripped module in the upstream kernel omits the level.
        packet.priority = length > BRIEF_RESEND and have > BRIEF_RESEND and tvb(36, 1):uint() or 0
    elseif packet.kind == CUTOFFS then
        packet.cutoffs, packet.cutoffs_version = {}, tvb(60, 2):uint()
        packet.room = profile == "udp" and tvb(4, 4):uint() or 0
        for level = 0, 7 do packet.cutoffs[level] = tvb(HEADER + 4 * level, 4):uint() end
    elseif packet.kind == ACK then
        packet.ack_count = tvb(28, 2):uint()
        local entries = HEADER + 2 + packet.ack_count * ACK_ENTRY
        if packet.ack_count > MAX_ACKS then
            packet.malformed = string.format("%d acks in one packet", packet.ack_count)
        elseif length < entries then
            packet.malformed = string.format("%d bytes, but an ACK packet has at least %d", length, entries)
        elseif have < entries then
            packet.cut = true
        else
            for at = HEADER + 2, entries - 1, ACK_ENTRY do
                if tvb(at, 8):uint64() ~= UInt64.new(0, 0) then
                    packet.acks[#packet.acks + 1] =
                        { id = tostring(client_id(tvb(at, 8))), port = tvb(at + 8, 2):uint(), at = at }
                end
            end
        end
    end
    if packet.priority and packet.priority > 7 then
        packet.malformed = string.format("priority %d", packet.priority)
    end
    return packet
end

-- ---------------------------------------------------------------------------------------------------------
-- Descriptions

-- Returns the message to which a packet refers.
local function message_kind(packet)
    local of_request = packet.by_client
    if packet.kind ~= DATA then of_request = not of_request end
    return of_request and "request" or "response"
end

local function seconds(time)
    if time < 0.001 then return string.format("%.1f µs", time * 1e6) end
    if time < 1 then return string.format("%.3f ms", time * 1e3) end
    return string.format("%.3f s", time)
end

local function nstime(time)
    local whole = math.floor(time)
    return NSTime.new(whole, math.floor((time - whole) * 1e9 + 0.5))
end

local function describe_data(packet, note)
    local stop = packet.offset + packet.data_len
    local text = string.format("%s %.0f..%.0f of %.0f", message_kind(packet), packet.offset, stop, packet.length)
    local remarks = {}
    if packet.retransmit then remarks[#remarks + 1] = "retransmitted" end
    if packet.sprayed then remarks[#remarks + 1] = "sprayed" end
    if packet.waiting > 0 then
        remarks[#remarks + 1] = string.format("%.0f bytes wait at its sender", packet.waiting)
    end
    if packet.response_limit > 0 then
        remarks[#remarks + 1] = string.format("its response may begin with %.0f bytes", packet.response_limit)
    end
    if note.gap then remarks[#remarks + 1] = string.format("gap of %.0f before it", note.gap) end
    if note.repeated and not packet.retransmit then
        remarks[#remarks + 1] = string.format("%.0f bytes seen before", note.repeated)
    end
    if note.beyond then remarks[#remarks + 1] = "beyond what was granted" end
    if note.length_was then remarks[#remarks + 1] = string.format("length was %.0f", note.length_was) end
    if note.completes then remarks[#remarks + 1] = "complete" end
    if #remarks > 0 then text = text .. " [" .. table.concat(remarks, ", ") .. "]" end
    return text
end

local function describe_resend(packet)
    if packet.everything then return message_kind(packet) .. " everything" end
    local stop = packet.resend_offset + packet.resend_length
    return string.format("%s %.0f..%.0f", message_kind(packet), packet.resend_offset, stop)
end

local function describe_grant(packet, note)
    local text = string.format("%s to %.0f", message_kind(packet), packet.grant_offset)
    if note.length then text = text .. string.format(" of %.0f", note.length) end
    return text .. string.format(" (%s), level %d",
        note.grant_new > 0 and string.format("+%.0f", note.grant_new) or "nothing new", packet.priority)
end

-- Lists the cutoffs from the highest level down to the level that accepts any length.
local function describe_cutoffs(packet)
    local levels = {}
    for level = 7, 0, -1 do
        local length = packet.cutoffs[level]
        if length == MINUS_ONE or level == 0 then
            levels[#levels + 1] = string.format("any length level %d", level)
            if level == 0 and length > 0 and length < 0x7fffffff then
                levels[#levels + 1] = string.format("unscheduled up to %.0f", length)
            end
            break
        elseif length > 0 then
            levels[#levels + 1] = string.format("%.0f level %d", length, level)
        end
    end
    local text = string.format("version %d: up to %s", packet.cutoffs_version, table.concat(levels, ", "))
    if packet.room > 0 then text = text .. string.format(", room for %.0f unscheduled bytes", packet.room) end
    return text
end

-- Returns the description of a packet for the Info column.
local function describe(packet, note)
    if not packet.header then
        return packet.malformed and "[malformed: " .. packet.malformed .. "]" or "[cut short in the capture]"
    end
    if packet.sealed and SEAL_NAMES[packet.kind] then
        local cause = packet.kind == 0x25 and string.format(", cause %.0f", packet.sequence) or ""
        return SEAL_NAMES[packet.kind] .. " [handshake" .. cause .. "]"
    end
    local name = NAMES[packet.kind] or string.format("type 0x%02x", packet.kind)
    local text = name .. " rpc " .. packet.id
    if packet.sealed then return text .. " [sealed, packet number " .. tostring(packet.number) .. "]" end
    if packet.malformed then return text .. " [malformed: " .. packet.malformed .. "]" end
    if packet.cut then return text .. " [cut short in the capture]" end
    if packet.kind == DATA then
        local answers = packet.confirm and " (answers a session challenge)" or ""
        return text .. " " .. describe_data(packet, note) .. answers
    end
    if packet.kind == GRANT then return text .. " " .. describe_grant(packet, note) end
    if packet.kind == RESEND then
        return text .. " " .. describe_resend(packet) .. string.format(", level %d", packet.priority)
    end
    if packet.kind == CUTOFFS then return text .. " " .. describe_cutoffs(packet) end
    if packet.kind == ACK and #packet.acks > 0 then
        local others = {}
        for _, ack in ipairs(packet.acks) do others[#others + 1] = ack.id end
        return text .. ", and rpc " .. table.concat(others, ", ")
    end
    if packet.kind == RPC_UNKNOWN and packet.refused then
        return text .. " refused: " .. (REFUSALS[packet.sequence] or REFUSALS[5])
    end
    if packet.kind == RPC_UNKNOWN and packet.finished then return text .. " finished" end
    if packet.kind == NEED_ACK and packet.confirm then return text .. " (session challenge)" end
    if packet.kind == BUSY and packet.confirm then return text .. " (session confirmed)" end
    return text
end

-- ---------------------------------------------------------------------------------------------------------
-- Packet details

local function add_dialect(tree, tvb, packet)
    if packet.profile == "kernel" then
        tree:add(f.kernel_ack, tvb(8, 3))
        tree:add(f.kernel_flags, tvb(13, 1))
        tree:add(f.kernel_window, tvb(14, 2))
        tree:add(f.kernel_checksum, tvb(16, 2))
        tree:add(f.kernel_urgent, tvb(18, 2))
        return
    end
    if packet.sealed then
        tree:add(f.version, tvb(13, 1))
        tree:add(f.number, tvb(14, 6))
        tree:add(f.phase, tvb(13, 1))
        return
    end
    if packet.confirm then
        tree:add(f.claim, tvb(8, 3))
    else
        local low = tree:add(f.low_water, tvb(8, 3))
        if tvb(8, 3):uint() == LOW_WATER_UNKNOWN then low:append_text(" (unknown)") end
    end
    tree:add(f.version, tvb(13, 1))
    local flags = tree:add(f.flags, tvb(13, 1))
    flags:add(f.flag_session, tvb(13, 1))
    flags:add(f.flag_confirm, tvb(13, 1))
    flags:add(f.flag_finished, tvb(13, 1))
    flags:add(f.flag_refused, tvb(13, 1))
    local long = has_long_session(tvb, 0)
    if long then
        tree:add(f.session, tvb(14, 6), UInt64.new(tvb(14, 4):uint(), tvb(18, 2):uint()))
    elseif packet.session then
        tree:add(f.session, tvb(14, 4), UInt64.new(tvb(14, 4):uint(), 0))
    else
        tree:add(f.incarnation, tvb(14, 4))
    end
    local range = long and tvb(12, 1) or tvb(18, 2)
    local bits = long and tvb(12, 1):bitfield(4, 4) or tvb(18, 2):uint()
    -- In a session of 32 bits the second feature means nothing.
    if packet.session and not long and math.floor(bits / 2) % 2 == 1 then bits = bits - 2 end
    local features = tree:add(f.features, range, bits)
    features:add(f.feature_empty, range, bits % 2 == 1)
    features:add(f.feature_long, range, has_bit(bits, 2))
    if long and packet.kind == GRANT then features:add(f.sprayable, range, has_bit(bits, SPRAYABLE)) end
    if long and packet.kind == DATA then features:add(f.sprayed, range, has_bit(bits, SPRAYED)) end
end

local function add_header(tree, tvb, packet)
    tree:add(f.profile, packet.profile):set_generated()
    tree:add(f.srcport, tvb(0, 2))
    tree:add(f.dstport, tvb(2, 2))
    tree:add(f.port, tvb(0, 2)):set_hidden()
    tree:add(f.port, tvb(2, 2)):set_hidden()
    tree:add(f.sequence, tvb(4, 4))
    tree:add(f.type, tvb(11, 1))
    tree:add(f.doff, tvb(12, 1))
    add_dialect(tree, tvb, packet)
    tree:add(f.sender_id, tvb(20, 8))
    tree:add(f.rpc, tvb(20, 8), client_id(tvb(20, 8))):set_generated()
    tree:add(f.sender, tvb(27, 1), packet.by_client and "client" or "server"):set_generated()
end

local function add_ack(tree, tvb, ack)
    tree:add(f.ack_rpc, tvb(ack.at, 8))
    tree:add(f.ack_port, tvb(ack.at + 8, 2))
end

local function add_data(tree, tvb, packet)
    tree:add(f.length, tvb(28, 4))
    tree:add(f.incoming, tvb(32, 4))
    if packet.acks[1] then add_ack(tree, tvb, packet.acks[1]) end
    tree:add(f.cutoff_version, tvb(46, 2))
    tree:add(f.retransmit, tvb(48, 1))
    local pad = 49
    if packet.waiting > 0 then
        tree:add(f.waiting, tvb(49, 1), packet.waiting)
        pad = 50
    end
    if packet.response_limit > 0 then
        tree:add(f.response_limit, tvb(50, 1), packet.response_limit)
        pad = 51
    end
    tree:add(f.pad, tvb(pad, 52 - pad))
    tree:add(f.segment_offset, tvb(52, 4))
    tree:add(f.offset, tvb(52, 4), packet.offset):set_generated()
    tree:add(f.data_len, packet.data_len):set_generated()
    if tvb:len() > DATA_HEADER then tree:add(f.data, tvb(DATA_HEADER)) end
end

local function add_cutoffs(tree, tvb, packet)
    for level = 7, 0, -1 do
        tree:add(f.cutoff, tvb(HEADER + 4 * level, 4)):prepend_text(string.format("Level %d: ", level))
    end
    tree:add(f.cutoffs_version, tvb(60, 2))
    if packet.room > 0 then tree:add(f.room, tvb(4, 4)) end
end

local function add_body(tree, tvb, packet)
    if packet.kind == DATA then
        add_data(tree, tvb, packet)
    elseif packet.kind == GRANT then
        tree:add(f.grant_offset, tvb(28, 4))
        tree:add(f.grant_priority, tvb(32, 1))
    elseif packet.kind == RESEND then
        tree:add(f.resend_offset, tvb(28, 4))
        tree:add(f.resend_length, tvb(32, 4))
        if tvb:len() > BRIEF_RESEND then tree:add(f.resend_priority, tvb(36, 1)) end
    elseif packet.kind == CUTOFFS then
        add_cutoffs(tree, tvb, packet)
    elseif packet.kind == ACK then
        tree:add(f.ack_count, tvb(28, 2))
        for _, ack in ipairs(packet.acks) do add_ack(tree, tvb, ack) end
    elseif packet.kind == RPC_UNKNOWN and packet.refused then
        tree:add(f.refusal, tvb(4, 4))
    end
end

-- Adds links to the other packets of the RPC.
local function add_links(tree, note, frame)
    local rpc, message = note.rpc, note.message
    local function link(field, to)
        if to and to ~= frame then tree:add(field, to):set_generated() end
    end
    link(f.request_in, rpc.request.first)
    link(f.response_in, rpc.response.first)
    link(f.complete_in, message.complete)
    link(f.resend_in, note.resend_in)
    link(f.acked_in, rpc.acked)
    link(f.refused_in, rpc.refused)
    if note.response_time then tree:add(f.response_time, nstime(note.response_time)):set_generated() end
    if note.completion_time then tree:add(f.completion_time, nstime(note.completion_time)):set_generated() end
end

local function add_data_remarks(tree, packet, note)
    if note.seen then tree:add(f.seen, note.seen):set_generated() end
    if packet.retransmit then
        local text = "Retransmitted DATA"
        if note.resend_in then
            text = text .. string.format(", RESEND in packet %d, %s before", note.resend_in, seconds(note.resend_time))
        end
        tree:add_proto_expert_info(e.retransmitted, text)
    end
    if note.repeated then
        tree:add(f.repeated, note.repeated):set_generated()
        tree:add_proto_expert_info(e.repeats, string.format("%.0f of the bytes were seen before", note.repeated))
    end
    if note.gap then
        tree:add(f.gap, note.gap):set_generated()
        local text = string.format("Gap: bytes %.0f to %.0f have not been seen", packet.offset - note.gap, packet.offset)
        tree:add_proto_expert_info(e.hole, text)
    end
    if note.beyond then
        local text = string.format("Starts %.0f bytes beyond what was granted; the GRANT may be missing in the capture", note.beyond)
        tree:add_proto_expert_info(e.beyond, text)
    end
    if note.length_was then
        tree:add_proto_expert_info(e.changed, string.format("The message had %.0f bytes before", note.length_was))
    end
    if note.completes then
        local text = string.format("The %s is complete", message_kind(packet))
        if note.completion_time then text = text .. ", " .. seconds(note.completion_time) .. " after its request began" end
        tree:add_proto_expert_info(e.complete, text)
    end
end

local function add_remarks(tree, packet, note)
    if packet.kind == DATA then
        add_data_remarks(tree, packet, note)
    elseif packet.kind == GRANT then
        tree:add(f.grant_new, note.grant_new):set_generated()
        tree:add_proto_expert_info(e.grant, "Grant: " .. describe_grant(packet, note))
    elseif packet.kind == RESEND then
        tree:add_proto_expert_info(e.resend, "RESEND: " .. describe_resend(packet))
    elseif packet.kind == RPC_UNKNOWN and packet.refused then
        tree:add_proto_expert_info(e.refused, "The request is refused: " .. (REFUSALS[packet.sequence] or REFUSALS[5]))
    elseif packet.kind == RPC_UNKNOWN then
        tree:add_proto_expert_info(e.unknown, packet.finished and "The server has finished this RPC" or "The RPC is unknown")
    end
end

-- ---------------------------------------------------------------------------------------------------------
-- Dissectors

-- Returns whether the packet is quoted by an ICMP error, and was therefore not sent at this time.
local function quoted(pinfo)
    local supported, value = pcall(function() return pinfo.in_error_pkt end)
    return supported and value and value ~= 0
end

-- Returns the note on the packet with position `index` in its frame.
local function note_of(packet, pinfo, index)
    local notes = notes_by_frame[pinfo.number] or {}
    notes_by_frame[pinfo.number] = notes
    if not pinfo.visited and not notes[index] then
        notes[index] = observe(packet, pinfo.number, pinfo.rel_ts)
    end
    return notes[index]
end

-- Adds a packet of `length` bytes to the tree. Returns its description for the Info column.
local function add_packet(tvb, length, profile, pinfo, tree, index)
    local packet = parse(tvb, length, profile)
    packet.from, packet.to = tostring(pinfo.src), tostring(pinfo.dst)
    packet.from_port, packet.to_port = packet.sport, packet.dport
    if profile == "udp" then
        packet.from_port, packet.to_port = own_port(tvb, 0, pinfo.src_port), pinfo.dst_port
        packet.sprayed = own_port(tvb, 0, nil) ~= nil
    end
    local usable = packet.whole and not packet.sealed and not packet.malformed and not packet.cut and not quoted(pinfo)
    local note = usable and note_of(packet, pinfo, index) or { grant_new = 0 }
    local text = describe(packet, note)
    local branch = tree:add(apus, tvb(), "Homa, " .. text)
    branch:add(f.words, text):set_generated():set_hidden()
    if packet.header then add_header(branch, tvb, packet) end
    if packet.whole then add_body(branch, tvb, packet) end
    if packet.malformed then
        branch:add_proto_expert_info(e.malformed, "Malformed: " .. packet.malformed)
    elseif packet.cut then
        branch:add_proto_expert_info(e.cut)
    elseif note.rpc then
        add_links(branch, note, pinfo.number)
        add_remarks(branch, packet, note)
    end
    return text
end

local function set_columns(pinfo, protocol, text)
    if quoted(pinfo) then return end
    pinfo.cols.protocol = protocol
    pinfo.cols.info = text
end

-- Dissects a datagram of the udp profile: one with a valid header, or one selected by the preference or "Decode As".
function apus.dissector(tvb, pinfo, tree)
    local length, have = tvb:reported_len(), tvb:len()
    if length == 0 or have == 0 then return 0 end
    local size, texts = length, {}
    if looks_like_header(tvb, 0, pinfo.src_port, pinfo.dst_port) then
        size = packet_size(tvb, pinfo.src_port, pinfo.dst_port)
    end
    local start = 0
    for index, stop in ipairs(packet_ends(tvb, size, pinfo.src_port, pinfo.dst_port)) do
        local piece = tvb(start, math.min(stop, have) - start):tvb()
        texts[index] = add_packet(piece, stop - start, "udp", pinfo, tree, index)
        start = stop
    end
    if #texts > 1 then tree:add(f.merged, #texts):set_generated() end
    set_columns(pinfo, "apus", table.concat(texts, " | "))
    return have
end

-- Returns a key for the pair of addresses, equal in both directions.
local function address_pair(pinfo)
    local from = tostring(pinfo.src) .. " " .. pinfo.src_port
    local to = tostring(pinfo.dst) .. " " .. pinfo.dst_port
    return from < to and from .. " " .. to or to .. " " .. from
end

local function heuristic(tvb, pinfo, tree)
    local between = address_pair(pinfo)
    if looks_like_header(tvb, 0, pinfo.src_port, pinfo.dst_port) then
        -- From here on, datagrams between these addresses are dissected even if they are malformed.
        if not quoted(pinfo) then first_frame[between] = math.min(first_frame[between] or pinfo.number, pinfo.number) end
    elseif not first_frame[between] or first_frame[between] > pinfo.number then
        return false
    end
    return apus.dissector(tvb, pinfo, tree) > 0
end

-- Dissects a packet of the kernel profile.
local kernel = Proto("apus_kernel", "Homa message transport, kernel profile")

function kernel.dissector(tvb, pinfo, tree)
    if tvb:len() == 0 then return 0 end
    set_columns(pinfo, "Homa", add_packet(tvb, tvb:reported_len(), "kernel", pinfo, tree, 1))
    return tvb:len()
end

local udp_ports = DissectorTable.get("udp.port")
local used_ports = apus.prefs.ports

function apus.prefs_changed()
    if used_ports == apus.prefs.ports then return end
    if used_ports ~= "" then udp_ports:remove(used_ports, apus) end
    used_ports = apus.prefs.ports
    if used_ports ~= "" then udp_ports:add(used_ports, apus) end
end

DissectorTable.get("ip.proto"):add(IP_PROTOCOL, kernel)
udp_ports:add_for_decode_as(apus)
apus:register_heuristic("udp", heuristic)
