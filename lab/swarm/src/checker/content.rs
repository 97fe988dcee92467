//! Content checker: every byte arrives unchanged.
//!
//! Requirements RPC-15 to RPC-17, WIRE-10, WIRE-25. Packets are checked when they are sent, so a
//! misplaced byte is found early.

use apus_wire::{Body, Role};

use super::contract::Checker;
use crate::directory::Directory;
use crate::observation::{CallId, HostEvent, Observation, WirePacket};
use crate::payload::is_payload;
use crate::violation::{Violation, ViolationKind};

/// Length of a full packet while the path MTU is unknown, in bytes (WIRE-25).
const SAFE_PACKET: usize = 1_452;

/// The checker; it needs no state.
#[derive(Debug)]
pub(crate) struct Content;

/// Returns the planned length of a message.
fn length(directory: &Directory, call: CallId, sender: Role) -> u32 {
    let planned = directory.call(call);
    match sender {
        Role::Client => planned.request,
        Role::Server => planned.response,
    }
}

fn message(
    directory: &Directory,
    call: CallId,
    sender: Role,
    bytes: &[u8],
) -> Result<(), Violation> {
    let length = length(directory, call, sender) as usize;
    let content = directory.content(call);
    let intact = bytes.len() == length && is_payload(content, sender, 0, bytes);
    Violation::unless(intact, ViolationKind::Content, call, || {
        let is_wrong = |at: &usize| !is_payload(content, sender, *at, &bytes[*at..=*at]);
        let wrong = (0..bytes.len()).find(is_wrong);
        (
            format!("the {length} bytes that the {sender:?} of call {call} sent"),
            format!("{} bytes, the first wrong one at {wrong:?}", bytes.len()),
        )
    })
}

fn packet(directory: &Directory, wire: &WirePacket<'_>) -> Result<(), Violation> {
    let limit = (directory.scenario.packet_limit as usize).max(SAFE_PACKET);
    Violation::unless(wire.len <= limit, ViolationKind::Content, wire.call, || {
        (format!("packets of at most {limit} bytes"), format!("one of {} bytes", wire.len))
    })?;
    let Body::Data(data, payload) = &wire.packet.body else { return Ok(()) };
    if !directory.scenario.is_honest(wire.peer) {
        return Ok(());
    }
    let Some(call) = wire.call else {
        let expected = "data of a call that was made".to_owned();
        return Err(Violation {
            kind: ViolationKind::Content,
            calls: Vec::new(),
            expected,
            observed: format!("{data:?}"),
        });
    };
    let length = length(directory, call, wire.sender);
    let right = data.message_length == length
        && wire.packet.header.sequence == data.offset
        && is_payload(directory.content(call), wire.sender, data.offset as usize, payload);
    Violation::unless(right, ViolationKind::Content, call, || {
        (
            format!("bytes of the {:?}'s message of {length} bytes, at their offset", wire.sender),
            format!(
                "{data:?} with {} bytes, sequence {}",
                payload.len(),
                wire.packet.header.sequence
            ),
        )
    })
}

impl Checker for Content {
    fn observe(
        &mut self,
        directory: &Directory,
        observation: &Observation<'_>,
    ) -> Result<(), Violation> {
        match &observation.event {
            HostEvent::Requested(Some(call), bytes) => {
                message(directory, *call, Role::Client, bytes)
            }
            HostEvent::Responded(call, bytes) => message(directory, *call, Role::Server, bytes),
            HostEvent::Sent(wire) => packet(directory, wire),
            _ => Ok(()),
        }
    }
}
