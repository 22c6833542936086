-- SPDX-License-Identifier: BSD-3-Clause
-- Wireshark dissector of the Scheduled Transfer Protocol: EtherType 0x8181, Ethernet II and 802.3
-- with SNAP; datagrams of IP protocol 118; and those of UDP port 8181, or of the ports that its preference
-- stp-st.udp_ports names. Wireshark uses the name stp for the spanning tree protocol, so this protocol is stp-st.
-- The Debian package installs it where Wireshark finds it. From the sources:
--   once:     tshark -X lua_script:tools/wireshark/stp-st.lua -r FILE
--   for good: copy it to ~/.local/lib/wireshark/plugins/ (Help > About > Folders)
-- The colours: View > Coloring Rules > Import, the file colorfilters beside this one.

-- Wireshark may have loaded it already from another folder.
local known, there = pcall(Dissector.get, "stp-st")
if known and there then return end

local stp = Proto("stp-st", "Scheduled Transfer Protocol")
local NONE = 0xffffffff
local HEADER, OPTION, APPEND = 40, 32, 64

-- The fields of each operation: { name, words of the header, base }. docs/protocol.md, section 3.
local PARAM, MX, BUFX, OFFSET, SYNC, B_NUM, D_ID, S_ID = 2, 14, 16, 20, 24, 28, 32, 36
-- Made by stp-dissector-table from stp/wire/operations.h: begin.
local OPS = {
  [0x01] = { "RC", { "I_Slots", PARAM }, { "I_Bufsize", BUFX }, { "I_Key", OFFSET },
             { "I_Max_STU", SYNC }, { "R_UPort", D_ID }, { "I_UPort", S_ID } },
  [0x02] = { "CA", { "R_Slots", PARAM }, { "R_Bufsize", BUFX }, { "R_Key", OFFSET },
             { "R_Max_STU", SYNC }, { "I_UPort", D_ID }, { "R_UPort", S_ID } },
  [0x03] = { "RD", { "I_Key", OFFSET } },
  [0x04] = { "DA", { "R_Key", OFFSET } },
  [0x05] = { "DC", { "I_Key", OFFSET } },
  [0x10] = { "NOP", { "Param", PARAM }, { "Mx", MX }, { "Bufx", BUFX }, { "Offset", OFFSET },
             { "Sync", SYNC }, { "B_num", B_NUM }, { "D_id", D_ID }, { "S_id", S_ID } },
  [0x13] = { "RMR", { "B_win", PARAM }, { "T_len", SYNC }, { "I_id", S_ID } },
  [0x14] = { "MRA", { "B_win", PARAM }, { "R_Mx", MX }, { "R_Bufx", BUFX },
             { "R_Offset", OFFSET }, { "T_len", SYNC }, { "I_id", D_ID }, { "R_id", S_ID } },
  [0x15] = { "GET", { "Length", PARAM }, { "I_Mx", MX }, { "R_Bufx", BUFX },
             { "R_Offset", OFFSET }, { "I_Bufx", SYNC }, { "I_Offset", B_NUM }, { "R_id", D_ID },
             { "G_num", S_ID } },
  [0x16] = { "RTS", { "CTS_req", PARAM }, { "Max_Block", MX }, { "T_len", SYNC },
             { "RTR_I_id", D_ID }, { "I_id", S_ID } },
  [0x17] = { "RA", { "I_id", D_ID }, { "R_id", S_ID } },
  [0x18] = { "RTR", { "T_len", SYNC }, { "I_id", S_ID } },
  [0x1a] = { "CTS", { "Blocksize", PARAM }, { "R_Mx", MX }, { "R_Bufx", BUFX },
             { "R_Offset", OFFSET }, { "F_Offset", SYNC }, { "B_num", B_NUM }, { "I_id", D_ID },
             { "R_id", S_ID } },
  [0x1b] = { "DATA", { "STU_num", PARAM }, { "R_Mx", MX }, { "R_Bufx", BUFX },
             { "R_Offset", OFFSET }, { "Sync", SYNC }, { "B_num", B_NUM }, { "R_id", D_ID },
             { "Opaque", S_ID } },
  [0x1c] = { "RS", { "Sync", SYNC }, { "B_num", B_NUM }, { "R_id", D_ID }, { "I_id", S_ID } },
  [0x1d] = { "RSR", { "R_Slots", PARAM }, { "B_seq", OFFSET }, { "Sync", SYNC },
             { "B_num", B_NUM }, { "I_id", D_ID }, { "R_id", S_ID } },
  [0x1e] = { "END", { "R_id", D_ID }, { "I_id", S_ID } },
  [0x1f] = { "EA", { "I_id", D_ID }, { "R_id", S_ID } },
}
-- Made by stp-dissector-table: end.
local FUNCTIONS = { [0] = "Get", "Fetch_Increment", "Fetch_Decrement", "Fetch_Clear", "Fetch_Add",
                    "Compare_And_Swap", "illegal", "FetchOp_Complete" }
local FLAGS = { { "Reserved", 0x0001 }, { "Append", 0x0002 }, { "Reject", 0x0004 },
                { "Last", 0x0008 }, { "Order", 0x0010 }, { "Send_state", 0x0020 },
                { "Interrupt", 0x0040 }, { "Silent", 0x0080 } }
local HEX = { Bufx = true, R_Bufx = true, I_Bufx = true, R_Offset = true, I_Offset = true,
              Offset = true, F_Offset = true, Sync = true, I_id = true, R_id = true,
              RTR_I_id = true, Opaque = true, I_Key = true, R_Key = true, D_id = true, S_id = true }

-- Fields. -------------------------------------------------------------------------------------------
local field = {
  op = ProtoField.string("stp-st.op", "Operation"),
  code = ProtoField.uint8("stp-st.op_code", "Op code", base.HEX),
  func = ProtoField.string("stp-st.function", "Function"),
  d_port = ProtoField.uint16("stp-st.d_port", "D_Port"),
  s_port = ProtoField.uint16("stp-st.s_port", "S_Port"),
  d_key = ProtoField.uint32("stp-st.d_key", "D_Key", base.HEX),
  cksum = ProtoField.uint16("stp-st.cksum", "Cksum", base.HEX),
  cksum_status = ProtoField.string("stp-st.cksum_status", "Checksum"),
  option = ProtoField.bytes("stp-st.option", "Option payload"),
  stu = ProtoField.bytes("stp-st.stu", "STU"),
  stu_length = ProtoField.uint32("stp-st.stu_length", "STU length"),
  append = ProtoField.bytes("stp-st.append", "Append"),
  padding = ProtoField.uint32("stp-st.padding", "Padding"),
  error = ProtoField.string("stp-st.error", "Error"),
  connection = ProtoField.uint32("stp-st.connection", "Connection"),
  request_in = ProtoField.framenum("stp-st.request_in", "Answers the request in", base.NONE,
                                   frametype.REQUEST),
  response_in = ProtoField.framenum("stp-st.response_in", "Answered in", base.NONE,
                                    frametype.RESPONSE),
  response_time = ProtoField.relative_time("stp-st.response_time", "Response time"),
  grant_in = ProtoField.framenum("stp-st.grant_in", "Granted in"),
  repeat_of = ProtoField.framenum("stp-st.repeat_of", "Repeats", base.NONE, frametype.RETRANS_PREV),
  block_bytes = ProtoField.uint32("stp-st.block_bytes", "Bytes of this Block so far"),
  block_stus = ProtoField.uint32("stp-st.block_stus", "STUs of this Block so far"),
  block_complete = ProtoField.bool("stp-st.block_complete", "Block complete"),
  block_first = ProtoField.framenum("stp-st.block_first", "First STU of this Block in"),
}
-- What the managed layer says (docs/managed-wire.md).
local MANAGED = { hello = "string", version = "uint32", private = "uint32", message = "uint32",
                  length = "uint32", tag = "hex", taken = "uint32", region = "string",
                  slots = "uint32", address = "string", access = "uint32", ended = "string" }
for name, kind in pairs(MANAGED) do
  local make = kind == "string" and ProtoField.string or ProtoField.uint32
  field["managed_" .. name] = make("stp-st.managed." .. name, "Managed: " .. name,
                                   kind == "hex" and base.HEX or nil)
end
for _, flag in ipairs(FLAGS) do
  field["flag_" .. flag[1]] = ProtoField.bool("stp-st.flag." .. flag[1]:lower(), flag[1], 16, nil, flag[2])
end
local own = {} -- by the operations' own field names
for _, op in pairs(OPS) do
  for i = 2, #op do
    local name, at = op[i][1], op[i][2]
    if not own[name] then
      local make = (name == "T_len") and ProtoField.uint64 or
                   ((at == PARAM or at == MX) and ProtoField.uint16 or ProtoField.uint32)
      own[name] = make("stp-st." .. name:lower(), name, HEX[name] and base.HEX or base.DEC)
    end
  end
end
local all = {}
for _, list in ipairs({ field, own }) do for _, f in pairs(list) do all[#all + 1] = f end end
stp.fields = all

local USUAL_UDP_PORTS = "8181"
stp.prefs.udp_ports = Pref.range("UDP ports", USUAL_UDP_PORTS, "UDP ports that carry STP, as in 8181,9001-9004", 65535)

local expert = {
  malformed = ProtoExpert.new("stp-st.malformed", "Not well formed", expert.group.MALFORMED,
                              expert.severity.ERROR),
  checksum = ProtoExpert.new("stp-st.bad_checksum", "Cksum does not match", expert.group.CHECKSUM,
                             expert.severity.ERROR),
  reject = ProtoExpert.new("stp-st.rejected", "Refused", expert.group.RESPONSE_CODE,
                           expert.severity.NOTE),
  repeated = ProtoExpert.new("stp-st.repeated", "Repeated", expert.group.SEQUENCE,
                             expert.severity.NOTE),
  ungranted = ProtoExpert.new("stp-st.ungranted", "DATA without a grant", expert.group.SEQUENCE,
                              expert.severity.WARN),
  unasked = ProtoExpert.new("stp-st.unasked", "Answer without a request", expert.group.SEQUENCE,
                            expert.severity.WARN),
}
stp.experts = { expert.malformed, expert.checksum, expert.reject, expert.repeated,
                expert.ungranted, expert.unasked }

-- Present if the frame is 802.3 with SNAP, which states its length.
local snap_type = Field.new("llc.type")
local udp_length = Field.new("udp.length")

-- Results of the first pass over a file, by frame number. -------------------------------------------
local facts, connections, requests, blocks, grants, count

function stp.init()
  facts, connections, requests, blocks, grants, count = {}, {}, {}, {}, {}, 0
end

local function flag(h, name)
  for _, f in ipairs(FLAGS) do if f[1] == name then return bit.band(h.bits, f[2]) ~= 0 end end
end

-- The connection of two ends, in either direction. An RC does not know the other Port yet.
local function connection_of(h)
  local a, b = h.src .. "/" .. h.s_port, h.dst .. "/" .. h.d_port
  local pair = a < b and a .. " " .. b or b .. " " .. a
  local c = connections[pair]
  if not c or (h.name == "CA" and c.key ~= h.d_key) then
    count = count + 1
    c = { number = count, whole = h.name == "CA", key = h.name == "CA" and h.d_key or nil }
    connections[pair] = c
  end
  return c
end

-- The key under which a request is stored and its answer finds it. `who` is the side that asked.
local function question_key(h)
  local who = h.c.number .. " " .. h.src .. "/" .. h.s_port .. " "
  local name = h.name
  if name == "RC" then return "RC " .. h.src .. "/" .. h.s_port .. " " .. h.offset end
  if name == "RD" then return who .. "RD" end
  if name == "DA" then return who .. "DA" end
  if name == "RTS" or name == "RTR" or name == "RMR" then return who .. "id " .. h.s_id end
  if name == "RS" then return who .. "sync " .. h.sync end
  if name == "END" then return who .. "end " .. h.s_id end
  if name == "GET" and not flag(h, "Reject") and h.func ~= 7 then return who .. "get " .. h.s_id end
  if flag(h, "Send_state") then return who .. "sync " .. h.sync end
end

local function answer_key(h)
  local who = h.c.number .. " " .. h.dst .. "/" .. h.d_port .. " "
  local name = h.name
  if name == "CA" then return "RC " .. h.dst .. "/" .. h.d_port .. " " .. h.d_key end
  if name == "DA" then return who .. "RD" end
  if name == "DC" then return who .. "DA" end
  if name == "RA" or name == "MRA" or name == "CTS" then return who .. "id " .. h.d_id end
  if name == "RTS" and h.d_id ~= NONE then return who .. "id " .. h.d_id end
  if name == "RSR" then return who .. "sync " .. h.sync end
  if name == "EA" then return who .. "end " .. h.d_id end
  if name == "GET" and flag(h, "Reject") then return who .. "get " .. h.s_id end
  if name == "DATA" then return who .. "get " .. h.b_num end
end

-- A Block may have the ids of a Get: its Mx and place distinguish them (rule 7.18).
local function lands_for(h, get)
  return get.id == h.d_id and get.mx == h.mx and
    (h.bufx > get.bufx or h.bufx == get.bufx and h.offset >= get.offset)
end

local function note_answer(h, fact)
  local key = answer_key(h)
  local request = key and requests[key]
  if request and (h.name ~= "DATA" or lands_for(h, request)) then
    fact.request_in, fact.response_time = request.frame, h.time - request.time
    local asked = facts[request.key]
    asked.response_in = asked.response_in or h.frame
    if h.name == "DATA" then fact.grant_in = request.frame end
  elseif key and h.c.whole and h.name ~= "DATA" and h.name ~= "CTS" then
    fact.unasked = true
  end
end

local function note_request(h, fact)
  local key = question_key(h)
  if not key then return end
  local before = requests[key]
  if before and h.name ~= "DATA" and before.name == h.name then fact.repeat_of = before.frame end
  requests[key] = { frame = h.frame, key = h.key, time = h.time, name = h.name, id = h.d_id, mx = h.mx,
                    bufx = h.sync, offset = h.b_num }
end

-- A CTS grants a Block, an MRA every Block of its region.
local function note_grant(h)
  if h.name ~= "CTS" and h.name ~= "MRA" or flag(h, "Reject") then return end
  local key = h.c.number .. " " .. h.src .. " " .. h.s_id
  grants[h.name == "CTS" and key .. " " .. h.b_num or key] = h.frame
end

local function note_block(h, fact)
  local key = h.c.number .. " " .. h.dst .. " " .. h.d_id
  fact.grant_in = fact.grant_in or grants[key .. " " .. h.b_num] or grants[key]
  fact.ungranted = not fact.grant_in and h.c.whole
  local block = blocks[key .. " " .. h.b_num]
  if not block then
    block = { stus = {}, count = 0, bytes = 0, first = h.frame }
    blocks[key .. " " .. h.b_num] = block
  end
  if block.stus[h.param] then
    fact.repeat_of = block.stus[h.param]
  else
    block.stus[h.param], block.count = h.frame, block.count + 1
    block.bytes = block.bytes + h.stu_length
  end
  if flag(h, "Last") then block.last = h.param end
  fact.block_first, fact.block_bytes, fact.block_stus = block.first, block.bytes, block.count
  fact.block_complete = block.last ~= nil and block.count == block.last + 1
end

-- The managed layer. -------------------------------------------------------------------------------
local HELLO, NOTICE, ENDED = 0x53544d48, 0x53544d4e, 0x53544d45
local HELLOS = { "request", "accept", "reject" }
local REASONS = { "broken off", "no receive" }
local RING, HELLO_HEAD, RING_HEAD = 1, 12, 16

local function region_name(name)
  return name == RING and "ring" or string.format("0x%x", name)
end

-- What a message in a ring, or the first of a connection, says in its first words.
local function managed_words(h, word, place)
  if place.ring and h.c.managed and h.param == 0 and h.stu_length >= RING_HEAD and word(3) then
    return { { "message", word(0) }, { "length", word(1) }, { "tag", word(2) }, { "taken", word(3) } }
  end
  if place.number == 1 and h.b_num == 0 and h.param == 0 and h.stu_length >= HELLO_HEAD and
     word(0) == HELLO and word(2) then
    h.c.managed = true
    local kind = bit.band(word(1), 0xffff)
    return { { "hello", HELLOS[kind] or "kind " .. kind }, { "version", bit.rshift(word(1), 16) },
             { "private", word(2) } }
  end
  if not h.c.managed or place.ring then return nil end
  if place.region then
    return place.region ~= 0 and { { "region", region_name(place.region) } } or nil
  end
  if place.number == 0 then return { { "tag", h.s_id } } end
  return { { "message", place.number }, { "tag", h.s_id } }
end

-- A list of names and values, or nil. `word(i)`: the i-th word behind the header, or nil if the
-- capture lacks it.
local function managed_of(h, word, option)
  local c = h.c
  local mine, theirs = h.src .. "/" .. h.s_port .. " ", h.dst .. "/" .. h.d_port .. " "
  c.asked, c.places = c.asked or {}, c.places or {}
  local first = option and word(0) or 0
  if h.name == "RTS" or h.name == "RMR" then
    c.asked[mine .. h.name .. h.s_id] = first
    if not c.managed or first == 0 then return nil end
    return { h.name == "RTS" and { "message", first } or { "region", region_name(first) } }
  elseif h.name == "CTS" then
    c.places[mine .. h.s_id] = { number = c.asked[theirs .. "RTS" .. h.d_id] or 0 }
  elseif h.name == "MRA" and not flag(h, "Reject") then
    local name = c.asked[theirs .. "RMR" .. h.d_id] or 0
    c.places[mine .. h.s_id] = { region = name, ring = name == RING }
    if not c.managed or name == 0 then return nil end
    if name == RING then
      return { { "region", "ring" }, { "slots", math.max(option and word(1) or 1, 1) } }
    end
    if not option or not word(2) then return { { "region", region_name(name) } } end
    return { { "region", region_name(name) },
             { "address", "0x" .. string.format("%x%08x", word(0), word(1)):gsub("^0+(%x)", "%1") },
             { "access", word(2) } }
  elseif h.name == "DATA" then
    local place = c.places[theirs .. h.d_id]
    return place and managed_words(h, word, place)
  elseif h.name == "NOP" and h.sync == NOTICE then
    return { { "taken", h.b_num } }
  elseif h.name == "RD" and first == ENDED and word(1) then
    return { { "ended", REASONS[word(1)] or tostring(word(1)) } }
  elseif h.name == "END" and c.managed and first ~= 0 then
    return { { "message", first } }
  end
end

local function learn(h, word, option)
  local fact = {}
  facts[h.key] = fact
  if h.name ~= "RC" then
    h.c = connection_of(h)
    fact.connection = h.c.number
  else
    h.c = { number = 0 }
  end
  note_answer(h, fact)
  note_request(h, fact)
  note_grant(h)
  if h.name == "DATA" then note_block(h, fact) end
  if h.name ~= "RC" then fact.managed = managed_of(h, word, option) end
end

-- One frame. ----------------------------------------------------------------------------------------
local function checksum_matches(buffer)
  local sum, length = 0, buffer:len()
  for at = 0, length - 2, 2 do sum = sum + buffer(at, 2):uint() end
  if length % 2 == 1 then sum = sum + buffer(length - 1, 1):uint() * 256 end
  while sum > 0xffff do sum = bit.band(sum, 0xffff) + bit.rshift(sum, 16) end
  return sum == 0xffff
end

-- `index`: of several datagrams in one packet, the number of this one.
local function read_header(buffer, pinfo, index)
  local bits = buffer(0, 2):uint()
  local code = bit.rshift(bits, 11)
  return {
    frame = pinfo.number, key = index == 1 and pinfo.number or pinfo.number .. "/" .. index, time = pinfo.rel_ts, src = tostring(pinfo.dl_src),
    dst = tostring(pinfo.dl_dst), bits = bits, code = code, name = OPS[code] and OPS[code][1],
    func = bit.band(bit.rshift(bits, 8), 7), param = buffer(2, 2):uint(),
    d_port = buffer(4, 2):uint(), s_port = buffer(6, 2):uint(), d_key = buffer(8, 4):uint(),
    mx = buffer(MX, 2):uint(), bufx = buffer(BUFX, 4):uint(),
    offset = buffer(20, 4):uint(), sync = buffer(24, 4):uint(), b_num = buffer(28, 4):uint(),
    d_id = buffer(32, 4):uint(), s_id = buffer(36, 4):uint(),
  }
end

-- Sizes are exponents of two (rule 3.11), and Transfers into a user's memory are not empty (9.8).
local function size_error(h)
  local function illegal(name, value, least, most)
    if value < least or value > most then return name .. " is no legal exponent" end
  end
  if h.name == "RC" or h.name == "CA" and not flag(h, "Reject") then
    return illegal("Bufsize", h.bufx, 8, 30) or illegal("Max_STU", h.sync, 8, 16)
  end
  if h.name == "RTS" then return illegal("Max_Block", h.mx, 8, 31) end
  if h.name == "CTS" then return illegal("Blocksize", h.param, 8, 31) end
  if (h.name == "RTR" or h.name == "RMR") and h.sync == 0 and h.b_num == 0 then
    return "T_len 0"
  end
end

-- How many bytes of an RC or CA over IP are padding, and not option payload (13.20).
local function padding_of(h, body)
  local answers = h.name == "CA" and not flag(h, "Reject")
  local stu = bit.band(bit.rshift(h.b_num, 16), 0xff)
  if not (h.name == "RC" or answers) or bit.band(h.b_num, 1) == 0 or stu < 8 or stu > 16 then return 0 end
  if body ~= bit.lshift(1, stu) + APPEND then return 0 end
  return body - (bit.band(h.b_num, 2) ~= 0 and OPTION or 0)
end

local function syntax_error(h, body, snap)
  if not h.name then return "no such operation" end
  if bit.band(h.bits, 1) ~= 0 then return "the reserved flag is set" end
  if h.code ~= 0x15 and h.func ~= 0 then return "a function on what is no GET" end
  if h.func == 6 then return "function 6 is illegal" end
  if h.name ~= "DATA" then
    if flag(h, "Append") then return "Append on what is no DATA" end
    if (snap and body ~= 0 or body > OPTION) and body ~= OPTION then
      return "control payload of a wrong length"
    end
  elseif flag(h, "Append") and (body < APPEND or not flag(h, "Last")) then
    return "Append without Last, or without room"
  end
  if h.s_port == 0 and not (h.name == "CA" and flag(h, "Reject")) then return "S_Port 0" end
  return size_error(h)
end

local function add_header(tree, buffer, h)
  tree:add(field.op, buffer(0, 2), h.name or string.format("0x%02x", h.code))
  tree:add(field.code, buffer(0, 2), h.code)
  if h.name == "GET" then tree:add(field.func, buffer(0, 2), FUNCTIONS[h.func]) end
  for _, f in ipairs(FLAGS) do tree:add(field["flag_" .. f[1]], buffer(0, 2)) end
  tree:add(field.d_port, buffer(4, 2))
  tree:add(field.s_port, buffer(6, 2))
  tree:add(field.d_key, buffer(8, 4))
  tree:add(field.cksum, buffer(12, 2))
  local op = OPS[h.code] or {}
  for i = 2, #op do
    local name, at = op[i][1], op[i][2]
    local width = name == "T_len" and 8 or ((at == PARAM or at == MX) and 2 or 4)
    tree:add(own[name], buffer(at, width))
  end
end

-- "RTS Last 101 > 202 T_len=3000 ..."
local function summary(buffer, h)
  local text = { h.name or string.format("op 0x%02x", h.code) }
  if h.name == "GET" and h.func ~= 0 then text[#text + 1] = FUNCTIONS[h.func] end
  for _, f in ipairs(FLAGS) do if bit.band(h.bits, f[2]) ~= 0 then text[#text + 1] = f[1] end end
  text[#text + 1] = h.s_port .. " > " .. h.d_port
  local op = OPS[h.code] or {}
  for i = 2, #op do
    local name, at = op[i][1], op[i][2]
    local value
    if name == "T_len" then
      value = tostring(buffer(at, 8):uint64())
    else
      value = buffer(at, (at == PARAM or at == MX) and 2 or 4):uint()
      if value == NONE then value = "none"
      elseif HEX[name] then value = string.format("0x%x", value) end
    end
    if h.name ~= "NOP" or buffer(at, 2):uint() ~= 0 then text[#text + 1] = name .. "=" .. value end
  end
  if h.name == "DATA" then text[#text + 1] = "+" .. h.stu_length end
  return table.concat(text, " ")
end

local function managed_text(fact)
  local text = {}
  for _, said in ipairs(fact and fact.managed or {}) do
    local value = MANAGED[said[1]] == "hex" and string.format("0x%x", said[2]) or tostring(said[2])
    text[#text + 1] = said[1] .. "=" .. value
  end
  return #text == 0 and "" or " [" .. table.concat(text, " ") .. "]"
end

local function add_facts(tree, h, fact)
  local function put(name, value)
    if value ~= nil then tree:add(field[name], value):set_generated() end
  end
  put("connection", fact.connection)
  for _, said in ipairs(fact.managed or {}) do put("managed_" .. said[1], said[2]) end
  put("request_in", fact.request_in)
  if fact.response_time then
    local whole = math.floor(fact.response_time)
    put("response_time", NSTime.new(whole, math.floor((fact.response_time - whole) * 1e9 + 0.5)))
  end
  put("response_in", fact.response_in)
  put("grant_in", fact.grant_in)
  for _, name in ipairs({ "block_first", "block_stus", "block_bytes", "block_complete" }) do
    put(name, fact[name])
  end
  if fact.repeat_of then
    put("repeat_of", fact.repeat_of)
    tree:add_proto_expert_info(expert.repeated)
  end
  if fact.ungranted then tree:add_proto_expert_info(expert.ungranted) end
  if fact.unasked then tree:add_proto_expert_info(expert.unasked) end
  if flag(h, "Reject") then tree:add_proto_expert_info(expert.reject) end
end

-- The bytes behind the header. Returns how many bytes the checksum covers.
local function add_body(tree, buffer, h, body)
  if h.name == "DATA" then
    local append = flag(h, "Append") and APPEND or 0
    tree:add(field.stu_length, h.stu_length):set_generated()
    if h.stu_length > 0 then tree:add(field.stu, buffer(HEADER, h.stu_length)) end
    if append > 0 then tree:add(field.append, buffer(HEADER + h.stu_length, append)) end
    return HEADER + body
  end
  if body == OPTION then
    tree:add(field.option, buffer(HEADER, OPTION))
    return HEADER + OPTION
  end
  return HEADER
end

-- Returns what the frame says in short.
local function dissect_one(buffer, pinfo, parent, index)
  pinfo.cols.protocol = "STP-ST"
  local tree = parent:add(stp, buffer())
  local function malformed(why)
    tree:add(field.error, why):set_generated()
    tree:add_proto_expert_info(expert.malformed, why)
    return "[" .. why .. "]"
  end
  if buffer:len() < HEADER then
    return malformed("shorter than a header")
  end
  local h = read_header(buffer, pinfo, index)
  local body = buffer:reported_len() - HEADER
  local snap = snap_type() ~= nil
  local padding = padding_of(h, body)
  body = body - padding
  h.stu_length = h.name == "DATA" and math.max(body - (flag(h, "Append") and APPEND or 0), 0) or 0
  add_header(tree, buffer, h)
  local why = syntax_error(h, body, snap)
  if why then
    return malformed(why .. ": " .. summary(buffer, h))
  end
  if not pinfo.visited then
    local function word(i)
      local at = HEADER + 4 * i
      return buffer:len() >= at + 4 and buffer(at, 4):uint() or nil
    end
    learn(h, word, h.name ~= "DATA" and body == OPTION)
  end
  local text = summary(buffer, h) .. managed_text(facts[h.key])
  tree:append_text(", " .. text)
  if buffer:len() == buffer:reported_len() then
    local covered = add_body(tree, buffer, h, body)
    if buffer(12, 2):uint() == 0 then
      tree:add(field.cksum_status, "none"):set_generated()
    elseif checksum_matches(buffer(0, covered)) then
      tree:add(field.cksum_status, "good"):set_generated()
    else
      tree:add(field.cksum_status, "bad"):set_generated()
      tree:add_proto_expert_info(expert.checksum)
    end
  end
  if padding > 0 then tree:add(field.padding, padding):set_generated() end
  add_facts(tree, h, facts[h.key] or {})
  return text
end

-- Joined datagrams. ----------------------------------------------------------------------------------
-- A host sends several datagrams of UDP at once, and joins those that come: a capture there has a packet with all of
-- their data. All but the last are equally long (docs/conformance.md). Linux joins 128 at most.
local MOST_JOINED = 128
local function divides(buffer, pinfo, length)
  local last = buffer:len() % length
  if buffer:len() > MOST_JOINED * length or (last ~= 0 and last < HEADER) then return false end
  for at = 0, buffer:len() - 1, length do
    local size = math.min(length, buffer:len() - at)
    if size < HEADER then return false end
    local h = read_header(buffer(at, size):tvb(), pinfo, 1)
    local body = size - HEADER
    if syntax_error(h, body - padding_of(h, body), true) then return false end
  end
  return true
end

-- How long each is, or nil if there is one only.
local function length_of_joined(buffer, pinfo)
  local size = buffer:len()
  if not udp_length() or size < 2 * HEADER or size ~= buffer:reported_len() then return nil end
  local h = read_header(buffer, pinfo, 1)
  if h.name ~= "DATA" then
    local padded = bit.lshift(1, math.min(bit.band(bit.rshift(h.b_num, 16), 0xff), 16)) + HEADER + APPEND
    for _, length in ipairs({ HEADER, HEADER + OPTION, padded }) do
      if length < size and divides(buffer, pinfo, length) then return length end
    end
    return nil
  end
  if buffer(12, 2):uint() ~= 0 and checksum_matches(buffer) then return nil end
  -- The next header of the same connection: its Ports and Key. Who writes these everywhere is not followed.
  local raw = buffer:raw()
  local name, from = raw:sub(5, 12), HEADER + 5
  for _ = 1, 64 do
    local found = raw:find(name, from, true)
    if not found or found - 5 > size - HEADER then return nil end
    if divides(buffer, pinfo, found - 5) then return found - 5 end
    from = found + 1
  end
end

function stp.dissector(buffer, pinfo, parent)
  local length = length_of_joined(buffer, pinfo) or math.max(buffer:len(), 1)
  local texts = {}
  for at = 0, math.max(buffer:len() - 1, 0), length do
    local one = at == 0 and length >= buffer:len() and buffer or buffer(at, math.min(length, buffer:len() - at)):tvb()
    texts[#texts + 1] = dissect_one(one, pinfo, parent, #texts + 1)
  end
  pinfo.cols.info = table.concat(texts, "; ")
end

DissectorTable.get("ethertype"):add(0x8181, stp)
DissectorTable.get("ip.proto"):add(118, stp)
local udp_port = DissectorTable.get("udp.port")
udp_port:add(USUAL_UDP_PORTS, stp)
udp_port:add_for_decode_as(stp)

local udp_ports = USUAL_UDP_PORTS
function stp.prefs_changed()
  if stp.prefs.udp_ports == udp_ports then return end
  if udp_ports ~= "" then udp_port:remove(udp_ports, stp) end
  udp_ports = stp.prefs.udp_ports
  if udp_ports ~= "" then udp_port:add(udp_ports, stp) end
end
