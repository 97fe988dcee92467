//! JSON form of packets and RPCs, for `apus decode --json`.

use apus_wire::{Body, Data, Dialect, Header, Kind, Role};
use serde_json::{Map, Value, json};

use crate::description::refusal_name;
use crate::filter::PacketType;
use crate::note::{Links, Note};
use crate::packet::{CapturedPacket, Content, QuotedPacket, Verdict};
use crate::rpc::CapturedRpc;

/// Returns a packet as a JSON object.
///
/// RPC ids are strings: they have 64 bits, and many JSON readers preserve only 53. Unknown fields
/// and fields that do not apply to the type are omitted. Times are in microseconds, except for
/// `time_s`: seconds since the first record of the capture.
#[must_use]
pub fn packet(packet: &CapturedPacket, links: Links) -> Value {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("packet", json!(packet.number));
    if packet.part.1 > 1 {
        put("part", json!(packet.part.0));
    }
    put("time_s", json!(packet.since_start as f64 / 1e9));
    let (from, to) = packet.addresses();
    put("from", json!(from));
    put("to", json!(to));
    put("profile", json!(packet.profile.to_string()));
    put("level", json!(packet.level()));
    put("bytes", json!(packet.len));
    put("type", json!(PacketType::of(packet).to_string()));
    if let Some(id) = packet.sender_id() {
        put("rpc", json!(id.client_id().to_string()));
    }
    if let Some(number) = packet.sealed_as {
        object.insert("sealed_number".to_owned(), json!(number));
    }
    add_content(packet, &mut object);
    if let Some(note) = &packet.note {
        add_note(packet, note, &mut object);
        add_links(links, &mut object);
    }
    object.insert("words".to_owned(), json!(packet.describe(links).to_string()));
    Value::Object(object)
}

fn extend(object: &mut Map<String, Value>, more: Value) {
    if let Value::Object(more) = more {
        object.extend(more);
    }
}

fn add_content(packet: &CapturedPacket, object: &mut Map<String, Value>) {
    match &packet.content {
        Content::Whole { header, body, data_len } => {
            add_dialect(header, object);
            add_fields(packet, body, *data_len, object);
        }
        Content::Malformed { error, .. } => extend(object, json!({ "error": error.to_string() })),
        Content::Sealed { sealed, .. } => {
            let (number, phase) = (sealed.number, u8::from(sealed.phase));
            extend(object, json!({ "number": number, "phase": phase }));
        }
        Content::Truncated { .. } => {}
        Content::Unreachable { what, about: QuotedPacket { from, to, .. } } => {
            let about = packet.kind().map(Kind::name);
            let about = json!({ "from": from, "to": to, "type": about });
            extend(object, json!({ "unreachable": what, "about": about }));
        }
    }
}

fn add_dialect(header: &Header, object: &mut Map<String, Value>) {
    let sender = match header.sender_id.sender() {
        Role::Client => "client",
        Role::Server => "server",
    };
    extend(object, json!({ "sender": sender }));
    let Dialect::Udp(udp) = &header.dialect else { return };
    let session =
        if udp.flags.contains(apus_wire::Flags::SESSION) { "session" } else { "incarnation" };
    extend(object, json!({ session: udp.incarnation, "flags": udp.flags.bits() }));
    extend(object, json!({ "features": udp.features.bits() }));
    if udp.flags.contains(apus_wire::Flags::CONFIRM) {
        extend(object, json!({ "claim": udp.low_water }));
    } else if udp.low_water != apus_wire::UdpFields::LOW_WATER_UNKNOWN {
        extend(object, json!({ "low_water": udp.low_water }));
    }
}

fn add_fields(
    packet: &CapturedPacket,
    body: &Body<'_>,
    data_len: u32,
    object: &mut Map<String, Value>,
) {
    let acks = || {
        let entry = |ack: apus_wire::Ack| json!({ "rpc": (ack.client_id & !1).to_string(), "server_port": ack.server_port });
        packet.acks().map(entry).collect::<Vec<_>>()
    };
    match body {
        Body::Data(data, _) => {
            let Data { message_length, incoming, cutoff_version, retransmit, offset, .. } = data;
            extend(
                object,
                json!({
                    "offset": offset,
                    "data": data_len,
                    "length": message_length,
                    "incoming": incoming,
                    "cutoff_version": cutoff_version,
                    "retransmit": retransmit,
                }),
            );
            if data.ack.is_some() {
                extend(object, json!({ "acks": acks() }));
            }
        }
        Body::Grant(grant) => {
            extend(object, json!({ "granted_to": grant.offset, "priority": grant.priority }));
        }
        Body::Resend(resend) => {
            let length = (!resend.is_everything()).then_some(resend.length);
            let missing = json!({
                "missing_from": resend.offset, "missing": length, "priority": resend.priority,
            });
            extend(object, missing);
        }
        Body::Cutoffs(cutoffs) => {
            extend(
                object,
                json!({ "cutoffs": cutoffs.unscheduled, "cutoff_version": cutoffs.version }),
            );
        }
        Body::Ack(_) => extend(object, json!({ "acks": acks() })),
        Body::RpcUnknown => match packet.verdict() {
            Some(Verdict::Refused(refusal)) => {
                extend(object, json!({ "refused": refusal_name(refusal) }));
            }
            Some(Verdict::Finished) => extend(object, json!({ "finished": true })),
            None => {}
        },
        Body::Busy | Body::NeedAck | Body::Freeze => {}
    }
}

fn add_note(packet: &CapturedPacket, note: &Note, object: &mut Map<String, Value>) {
    let Content::Whole { body, .. } = &packet.content else { return };
    match body {
        Body::Data(..) => {
            extend(object, json!({ "message": note.message_kind.name() }));
            if let Some(length) = note.length_was {
                return extend(object, json!({ "length_was": length }));
            }
            extend(object, json!({ "seen": note.seen, "complete": note.completes }));
            for (name, bytes) in [("repeated", note.repeated), ("gap", note.gap)] {
                if bytes > 0 {
                    extend(object, json!({ name: bytes }));
                }
            }
            if let Some(bytes) = note.beyond {
                extend(object, json!({ "beyond_grant": bytes }));
            }
            if let Some((number, time)) = note.resend {
                extend(object, json!({ "resend_in": number, "resend_us": micros(time) }));
            }
            let times =
                [("response_us", note.response_time), ("completion_us", note.completion_time)];
            for (name, time) in times {
                if let Some(time) = time {
                    extend(object, json!({ name: micros(time) }));
                }
            }
        }
        Body::Grant(_) => {
            extend(
                object,
                json!({ "message": note.message_kind.name(), "granted_new": note.granted }),
            );
        }
        Body::Resend(_) => extend(object, json!({ "message": note.message_kind.name() })),
        _ => {}
    }
}

fn add_links(links: Links, object: &mut Map<String, Value>) {
    let pairs = [
        ("request_in", links.request),
        ("response_in", links.response),
        ("complete_in", links.complete),
        ("acked_in", links.acked),
        ("refused_in", links.refused),
        ("unreachable_in", links.unreachable),
    ];
    for (name, number) in pairs {
        if let Some(number) = number {
            extend(object, json!({ name: number }));
        }
    }
}

/// Returns an RPC as a JSON object. `null` marks values missing from the capture.
#[must_use]
pub fn rpc(rpc: &CapturedRpc) -> Value {
    let number = |found: Option<(u64, i64)>| found.map(|(number, _)| number);
    json!({
        "rpc": rpc.id.to_string(),
        "profile": rpc.profile.to_string(),
        "client": rpc.client,
        "server": rpc.server,
        "packets": rpc.packets,
        "request_bytes": rpc.request.length,
        "response_bytes": rpc.response.length,
        "request_seen": rpc.request.seen(),
        "response_seen": rpc.response.seen(),
        "request_in": number(rpc.request.first),
        "response_in": number(rpc.response.first),
        "complete_in": number(rpc.response.complete),
        "acked_in": number(rpc.acked),
        "refused_in": number(rpc.refused),
        "unknown_in": number(rpc.unknown),
        "unreachable_in": number(rpc.unreachable),
        "grants": rpc.request.grants + rpc.response.grants,
        "resends": rpc.request.resends + rpc.response.resends,
        "retransmitted": rpc.request.retransmitted + rpc.response.retransmitted,
        "response_us": rpc.response_time().map(micros),
        "completion_us": rpc.completion_time().map(micros),
    })
}

/// Converts nanoseconds to microseconds.
#[must_use]
pub fn micros(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / 1e3
}
