//! The envelope of a step of a stream: PUSH, PULL or CANCEL.

use super::error::EnvelopeError;
use super::fields::{Fields, put_fixed};
use super::layout::{FIXED_LEN, kind};
use bytes::{BufMut, Bytes, BytesMut};

const END: u8 = 0x01;

/// A client's action on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamCommand {
    /// Sends part `number` of the request; `end` marks the last part.
    Push {
        /// Position of the part, from 0.
        number: u32,
        /// Whether this is the last part.
        end: bool,
    },
    /// Requests part `number` of the response.
    Pull {
        /// Position of the part, from 0.
        number: u32,
    },
    /// Cancels the stream.
    Cancel,
}

/// A step of a stream, 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamHead {
    /// The stream, by its number at the server.
    pub stream: u64,
    /// The step.
    pub command: StreamCommand,
}

impl StreamHead {
    pub(super) fn parse(fields: &mut Fields) -> Result<Self, EnvelopeError> {
        let number = fields.number();
        let command = match fields.kind() {
            kind::PUSH => StreamCommand::Push { number, end: fields.flags(END)? == END },
            kind::PULL => StreamCommand::Pull { number },
            kind::CANCEL if number == 0 => StreamCommand::Cancel,
            other => return Err(EnvelopeError::Kind(other)),
        };
        if !matches!(command, StreamCommand::Push { .. }) {
            fields.flags(0)?;
        }
        if fields.small() != 0 {
            return Err(EnvelopeError::Kind(fields.kind()));
        }
        Ok(Self { stream: fields.u64()?, command })
    }

    /// Returns the bytes of the envelope.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let (kind, flags, number) = match self.command {
            StreamCommand::Push { number, end } => (kind::PUSH, if end { END } else { 0 }, number),
            StreamCommand::Pull { number } => (kind::PULL, 0, number),
            StreamCommand::Cancel => (kind::CANCEL, 0, 0),
        };
        let mut buffer = BytesMut::with_capacity(FIXED_LEN + 8);
        put_fixed(&mut buffer, kind, flags, 0, number);
        buffer.put_u64_le(self.stream);
        buffer.freeze()
    }
}
