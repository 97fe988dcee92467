//! A complete message: all of its bytes have arrived.

use super::MessageIn;
use apus_wire::Data;
use bytes::Bytes;

/// A complete message, to be delivered to the application.
#[derive(Debug)]
pub(crate) struct CompleteMessage {
    /// The retained bytes: all, or the first ones (CAP-15).
    pub(crate) payload: Bytes,
    /// Total bytes, retained or not. Everything but memory is counted with this.
    pub(crate) length: u32,
    /// Bytes that its sender announced to send without grants.
    pub(crate) unscheduled: u32,
}

impl CompleteMessage {
    /// A message that arrived in one packet with the header `data`, if `payload` is the whole of
    /// it. Its first `keep` bytes are retained.
    #[inline(always)]
    pub(crate) fn in_one_packet(data: &Data, payload: &[u8], keep: u32) -> Option<Self> {
        let length = data.message_length;
        if payload.len() != length as usize {
            return None;
        }
        let kept = &payload[..keep.min(length) as usize];
        // A boxed slice: `Bytes::copy_from_slice` makes a vector first, which costs 90 instructions
        // more.
        let payload = Bytes::from(Box::<[u8]>::from(kept));
        Some(Self { payload, length, unscheduled: data.incoming.min(length) })
    }

    /// A message that arrived in several packets.
    ///
    /// # Panics
    ///
    /// If bytes are missing.
    pub(crate) fn in_pieces(message: MessageIn) -> Self {
        let (length, unscheduled) = (message.length(), message.unscheduled());
        Self { payload: message.into_bytes(), length, unscheduled }
    }
}
