//! Does every byte arrive as it was sent?
//!
//! Requirements RPC-15 to RPC-17, WIRE-10, WIRE-25. On the wire, too: a byte in the wrong place is found when
//! it leaves.

use apus_wire::{Body, Role};

use super::Checker;
use crate::directory::Directory;
use crate::payload::is_payload;
use crate::seen::{CallId, Seen, What, Wire};
use crate::violation::{Kind, Violation};

/// Bytes of a full packet before its length is known (WIRE-25).
const CAUTIOUS: usize = 1_452;

/// Needs to remember nothing.
#[derive(Debug)]
pub(crate) struct Content;

/// What a message of a call should be long.
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
    let intact = bytes.len() == length && is_payload(call, sender, 0, bytes);
    Violation::unless(intact, Kind::Content, call, || {
        let wrong = (0..bytes.len()).find(|at| !is_payload(call, sender, *at, &bytes[*at..=*at]));
        (
            format!("the {length} bytes that the {sender:?} of call {call} gave"),
            format!("{} bytes, the first wrong one at {wrong:?}", bytes.len()),
        )
    })
}

fn packet(directory: &Directory, wire: &Wire<'_>) -> Result<(), Violation> {
    let limit = (directory.scenario.packet_limit as usize).max(CAUTIOUS);
    Violation::unless(wire.len <= limit, Kind::Content, wire.call, || {
        (format!("packets of at most {limit} bytes"), format!("one of {} bytes", wire.len))
    })?;
    let Body::Data(data, payload) = &wire.packet.body else { return Ok(()) };
    let Some(call) = wire.call else {
        let expected = "data of a call that somebody made".to_owned();
        return Err(Violation {
            kind: Kind::Content,
            calls: Vec::new(),
            expected,
            seen: format!("{data:?}"),
        });
    };
    let length = length(directory, call, wire.sender);
    let right = data.message_length == length
        && wire.packet.header.sequence == data.offset
        && is_payload(call, wire.sender, data.offset as usize, payload);
    Violation::unless(right, Kind::Content, call, || {
        (
            format!("bytes of the {:?}'s message of {length} bytes, in their place", wire.sender),
            format!(
                "{data:?} with {} bytes, sequence {}",
                payload.len(),
                wire.packet.header.sequence
            ),
        )
    })
}

impl Checker for Content {
    fn see(&mut self, directory: &Directory, seen: &Seen<'_>) -> Result<(), Violation> {
        match &seen.what {
            What::Requested(Some(call), bytes) => message(directory, *call, Role::Client, bytes),
            What::Responded(call, bytes) => message(directory, *call, Role::Server, bytes),
            What::Sent(wire) => packet(directory, wire),
            _ => Ok(()),
        }
    }
}
