//! Cutting a capture into exchanges.
//!
//! An exchange starts with the first byte of a command. On a connection, the number of that byte is
//! a multiple of a command's length; over apus, where every command is a call, a new call starts an
//! exchange.

use super::message::LENGTH;
use super::packet::{Content, Packet, kind_name};

/// A packet of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CapturedEvent {
    /// Nanoseconds since the start of the exchange.
    pub(super) at: u64,
    pub(super) from_client: bool,
    /// Payload bytes.
    pub(super) bytes: u32,
    /// Command bytes of this exchange that the packet acknowledges; 0 for packets of the client.
    pub(super) acknowledged: u32,
    /// Its description.
    pub(super) says: String,
}

/// Returns whether an exchange has every byte of its command and of its reply exactly once.
pub(super) fn is_whole(events: &[CapturedEvent]) -> bool {
    let bytes = |from_client: bool| -> u32 {
        events.iter().filter(|it| it.from_client == from_client).map(|it| it.bytes).sum()
    };
    bytes(true) == LENGTH as u32 && bytes(false) == LENGTH as u32
}

/// Returns the packets of each exchange with the server at that port; `None` if the beginning of
/// the connection is missing.
pub(super) fn cut<'a>(
    packets: impl Iterator<Item = &'a Packet> + Clone,
    server: u16,
) -> Option<Vec<Vec<CapturedEvent>>> {
    let mut exchanges: Vec<(u64, Vec<CapturedEvent>)> = Vec::new();
    let mut cutter = Cutter::of(packets.clone(), server)?;
    for packet in packets {
        let Some((begins, mut event)) = cutter.event(packet) else { continue };
        if begins {
            exchanges.push((packet.at, Vec::new()));
        }
        // Packets before the first command open the connection.
        let Some((began, events)) = exchanges.last_mut() else { continue };
        event.at = packet.at.saturating_sub(*began);
        events.push(event);
    }
    Some(exchanges.into_iter().map(|(_, events)| events).collect())
}

/// Recognises the start of an exchange.
enum Cutter {
    /// Sequence numbers of the client's first byte and of the first byte of the next command;
    /// whether the connection is closed.
    Tcp { server: u16, first: u32, begun: u32, over: bool },
    /// The latest call.
    Apus { server: u16, last: Option<u64> },
}

impl Cutter {
    fn of<'a>(mut packets: impl Iterator<Item = &'a Packet>, server: u16) -> Option<Self> {
        packets.find_map(|packet| match packet.content {
            Content::Apus { .. } => Some(Self::Apus { server, last: None }),
            Content::Tcp { sequence, opens: true, .. } if packet.to == server => {
                let first = sequence.wrapping_add(1);
                Some(Self::Tcp { server, first, begun: 0, over: false })
            }
            Content::Tcp { .. } => None,
        })
    }

    /// Returns a packet as an event, and whether it starts an exchange; `None` if it belongs to
    /// none.
    fn event(&mut self, packet: &Packet) -> Option<(bool, CapturedEvent)> {
        match (self, packet.content) {
            (
                Self::Tcp { server, first, begun, over },
                Content::Tcp { sequence, acknowledged, bytes, opens, ends },
            ) => {
                *over |= ends;
                if opens || *over {
                    return None;
                }
                let from_client = packet.to == *server;
                // A byte before `begun` is a retransmission.
                let offset = sequence.wrapping_sub(*first);
                let new = offset >= *begun && offset.is_multiple_of(LENGTH as u32);
                let begins = from_client && bytes > 0 && new;
                if begins {
                    *begun = offset + LENGTH as u32;
                }
                // Bytes of earlier exchanges do not count.
                let before = begun.saturating_sub(LENGTH as u32);
                let acknowledged = acknowledged.wrapping_sub(*first).saturating_sub(before);
                let acknowledged = if from_client { 0 } else { acknowledged };
                let says = match bytes {
                    0 => "ACK".to_owned(),
                    bytes => format!("{bytes} bytes"),
                };
                Some((begins, CapturedEvent { at: 0, from_client, bytes, acknowledged, says }))
            }
            (Self::Apus { server, last }, Content::Apus { kind, call, bytes }) => {
                let from_client = packet.to == *server;
                let begins = from_client && bytes > 0 && *last != Some(call);
                if begins {
                    *last = Some(call);
                }
                let says = match bytes {
                    0 => kind_name(kind).to_owned(),
                    bytes => format!("{}, {bytes} bytes", kind_name(kind)),
                };
                Some((begins, CapturedEvent { at: 0, from_client, bytes, acknowledged: 0, says }))
            }
            _ => None,
        }
    }
}
