//! The variant of the kernel module that a peer runs (kernel profile).
//!
//! The header has no version; the variant is inferred from the packets of the peer. Today's module
//! announces in each DATA packet the number of bytes sent without grants, which is at least one;
//! the stripped module of the upstream kernel has no grants and leaves the field 0. Its RESENDs end
//! before the level. A receiver with grants is recognised by any packet that a stripped one does
//! not send. Source: docs/reference/homa-module.md, *Variants*; requirement WIRE-26.

use apus_wire::Body;

/// The features of a peer's module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Variant {
    /// Everything. Assumed of a peer until its packets show otherwise.
    #[default]
    Full,
    /// The stripped module of the upstream kernel: no GRANT, CUTOFFS and FREEZE, and no levels. It
    /// sends all of a message at once, and is granted nothing.
    Stripped,
}

impl Variant {
    /// The variant that a packet of the kernel profile reveals; `None` if both send such packets.
    pub(crate) const fn shown_by(body: &Body<'_>) -> Option<Self> {
        match body {
            Body::Data(data, _) if data.is_stripped => Some(Self::Stripped),
            Body::Resend(resend) if resend.brief => Some(Self::Stripped),
            Body::Data(..) | Body::Resend(_) => Some(Self::Full),
            Body::Grant(_) | Body::Cutoffs(_) | Body::Freeze => Some(Self::Full),
            Body::RpcUnknown | Body::Busy | Body::NeedAck | Body::Ack(_) => None,
        }
    }

    pub(crate) const fn is_stripped(self) -> bool {
        matches!(self, Self::Stripped)
    }
}
