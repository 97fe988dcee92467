//! Parsing and emission of packets.

use crate::ack::AckList;
use crate::cutoffs::Cutoffs;
use crate::data::Data;
use crate::error::ParseError;
use crate::grant::Grant;
use crate::header::Header;
use crate::kind::Kind;
use crate::lengths::{DATA_HEADER_LEN, HeaderBuffer};
use crate::older;
use crate::profile::Profile;
use crate::resend::Resend;

/// A packet in either profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The common header.
    pub header: Header,
    /// The part that depends on the kind.
    pub body: Body<'a>,
}

/// The part of a packet that follows the common header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// A piece of a message, and its bytes.
    Data(Data, &'a [u8]),
    /// Permission to send further bytes.
    Grant(Grant),
    /// Bytes are missing.
    Resend(Resend),
    /// The RPC of a RESEND is not known (`WIRE-13`).
    RpcUnknown,
    /// The sender is alive and the receiver has to wait (`WIRE-14`).
    Busy,
    /// Priorities for unscheduled packets.
    Cutoffs(Cutoffs),
    /// Freeze time traces (`WIRE-16`).
    Freeze,
    /// The server's question whether the RPC's state is still needed (`WIRE-17`).
    NeedAck,
    /// RPCs whose state is no longer needed, in addition to the header's.
    Ack(AckList),
}

impl Body<'_> {
    /// Returns the packet type.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Data(..) => Kind::Data,
            Self::Grant(_) => Kind::Grant,
            Self::Resend(_) => Kind::Resend,
            Self::RpcUnknown => Kind::RpcUnknown,
            Self::Busy => Kind::Busy,
            Self::Cutoffs(_) => Kind::Cutoffs,
            Self::Freeze => Kind::Freeze,
            Self::NeedAck => Kind::NeedAck,
            Self::Ack(_) => Kind::Ack,
        }
    }
}

impl<'a> Packet<'a> {
    /// Parses one packet. Bytes behind a control packet's header are ignored; [`Packet::all`] reads
    /// them as further packets.
    ///
    /// # Errors
    ///
    /// A [`ParseError`] that states the defect of the packet; never panics (invariant CODEC-1).
    #[inline]
    pub fn parse(profile: Profile, bytes: &'a [u8]) -> Result<Self, ParseError> {
        // Each profile has a separate parser: shared code would decide between them field by field.
        match profile {
            Profile::Udp => match bytes.split_first_chunk() {
                Some((head, payload)) if Header::peek_kind(head) == Some(Kind::Data) => {
                    Self::parse_data(head, payload)
                }
                _ => Self::parse_as(Profile::Udp, bytes),
            },
            Profile::Kernel => Self::parse_as(Profile::Kernel, bytes),
        }
    }

    /// Parses DATA of the udp profile: most packets.
    #[inline(always)]
    fn parse_data(head: &[u8; DATA_HEADER_LEN], payload: &'a [u8]) -> Result<Self, ParseError> {
        let (header, _) = Header::parse(Profile::Udp, head)?;
        let data = Data::parse(&header, head, payload.len())?;
        Ok(Self { header, body: Body::Data(data, payload) })
    }

    // Not needed by DATA of the udp profile, which has a separate parser.
    #[inline(never)]
    fn parse_as(profile: Profile, bytes: &'a [u8]) -> Result<Self, ParseError> {
        let (header, kind) = Header::parse(profile, bytes)?;
        if profile == Profile::Kernel
            && let Some(layout) = older::entries_of(kind, bytes)
        {
            return Err(ParseError::OlderLayout(layout));
        }
        let (need, have) = (kind.min_len(profile), bytes.len());
        if have < need {
            return Err(ParseError::TooShort { kind: Some(kind), need, have });
        }
        let body = match kind {
            Kind::Data => {
                let payload = &bytes[DATA_HEADER_LEN..];
                Body::Data(Data::parse(&header, bytes, payload.len())?, payload)
            }
            Kind::Grant => Body::Grant(Grant::parse(bytes)?),
            Kind::Resend => Body::Resend(Resend::parse(bytes)?),
            Kind::RpcUnknown => Body::RpcUnknown,
            Kind::Busy => Body::Busy,
            Kind::Cutoffs => Body::Cutoffs(Cutoffs::parse(bytes)),
            Kind::Freeze => Body::Freeze,
            Kind::NeedAck => Body::NeedAck,
            Kind::Ack => Body::Ack(AckList::parse(bytes)?),
        };
        Ok(Self { header, body })
    }

    /// Writes everything but a DATA packet's payload and returns the number of bytes written.
    #[inline(always)]
    pub fn emit_header(&self, out: &mut HeaderBuffer) -> usize {
        if let Body::Data(data, _) = &self.body {
            self.header.emit(Kind::Data, out);
            data.emit(out);
            return DATA_HEADER_LEN;
        }
        self.emit_control(out)
    }

    /// Writes a control packet.
    // Not needed by DATA, which has a separate writer.
    #[inline(never)]
    fn emit_control(&self, out: &mut HeaderBuffer) -> usize {
        let kind = self.body.kind();
        self.header.emit(kind, out);
        match &self.body {
            Body::Data(data, _) => data.emit(out),
            Body::Grant(grant) => grant.emit(out),
            Body::Resend(resend) => resend.emit(out),
            Body::Cutoffs(cutoffs) => cutoffs.emit(out),
            Body::Ack(list) => list.emit(out),
            Body::RpcUnknown | Body::Busy | Body::Freeze | Body::NeedAck => {}
        }
        match &self.body {
            Body::Ack(list) => list.packet_len(self.header.profile()),
            Body::Resend(resend) => resend.packet_len(),
            _ => kind.header_len(),
        }
    }
}
