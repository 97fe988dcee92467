//! Contents of packets with the headers of apus, without the payload that no host reads.

use std::cell::RefCell;

use apus_wire::MAX_HEADER_LEN;

use crate::message::Message;

/// Bytes of a message that are carried and kept.
pub(super) const LABEL: usize = Message::SHORTEST as usize;

/// First bytes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) number: u32,
    /// Length of the message.
    pub(super) bytes: u32,
}

impl Label {
    pub(super) fn write(self) -> [u8; LABEL] {
        (u64::from(self.number) << 32 | u64::from(self.bytes)).to_be_bytes()
    }

    pub(super) fn read(payload: &[u8]) -> Option<Self> {
        let label = u64::from_be_bytes(*payload.first_chunk()?);
        Some(Self { number: (label >> 32) as u32, bytes: label as u32 })
    }
}

/// Contents of a packet of apus: its header, and the first bytes of its payload.
#[derive(Clone, Debug)]
pub struct Frame {
    pub(super) header: [u8; MAX_HEADER_LEN],
    pub(super) header_len: u8,
    /// First bytes of the payload; the others are zeros.
    pub(super) beginning: [u8; LABEL],
    /// The sending process and its port; the packet is for the same process of the receiver.
    pub(super) process: u8,
}

impl Default for Frame {
    fn default() -> Self {
        Self { header: [0; MAX_HEADER_LEN], header_len: 0, beginning: [0; LABEL], process: 0 }
    }
}

thread_local! {
    /// Buffer for assembling packets: one per thread stays in the cache.
    static DATAGRAM: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Frame {
    /// Calls `receive` with the packet as a transport receives it, with this number of payload
    /// bytes. Payload after the label has no meaning.
    pub(super) fn with_datagram<T>(&self, payload: u32, receive: impl FnOnce(&[u8]) -> T) -> T {
        let header_len = usize::from(self.header_len);
        let end = header_len + payload as usize;
        DATAGRAM.with_borrow_mut(|datagram| {
            if datagram.len() < end.max(MAX_HEADER_LEN + LABEL) {
                datagram.resize(end.max(MAX_HEADER_LEN + LABEL), 0);
            }
            // Copying a constant length needs no call.
            datagram[..MAX_HEADER_LEN].copy_from_slice(&self.header);
            datagram[header_len..header_len + LABEL].copy_from_slice(&self.beginning);
            receive(&datagram[..end])
        })
    }
}
