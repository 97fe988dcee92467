//! The trace that a call belongs to: the W3C recommendation "Trace Context" in binary form.

/// Version, trace id, id of the caller's span, and flags: the four parts of a `traceparent` as 26
/// bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext([u8; Self::LEN]);

impl TraceContext {
    /// Bytes of a context: one for the version, 16 of the trace id, 8 of the span id, one for
    /// flags.
    pub const LEN: usize = 26;

    /// Returns the context of a span.
    #[must_use]
    pub fn new(trace_id: [u8; 16], span_id: [u8; 8], sampled: bool) -> Self {
        let mut bytes = [0; Self::LEN];
        bytes[1..17].copy_from_slice(&trace_id);
        bytes[17..25].copy_from_slice(&span_id);
        bytes[25] = u8::from(sampled);
        Self(bytes)
    }

    /// Returns the context with these bytes: version, trace id, span id, flags.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes on the wire.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// Returns the id of the trace.
    #[must_use]
    pub fn trace_id(&self) -> [u8; 16] {
        let mut id = [0; 16];
        id.copy_from_slice(&self.0[1..17]);
        id
    }

    /// Returns the id of the span that made the call.
    #[must_use]
    pub fn span_id(&self) -> [u8; 8] {
        let mut id = [0; 8];
        id.copy_from_slice(&self.0[17..25]);
        id
    }

    /// Returns whether the caller records the trace.
    #[must_use]
    pub const fn is_sampled(&self) -> bool {
        self.0[25] & 1 == 1
    }

    /// Returns the context in the text form of the header `traceparent`.
    #[must_use]
    pub fn to_traceparent(&self) -> String {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let parts = [&self.0[..1], &self.0[1..17], &self.0[17..25], &self.0[25..]];
        parts.map(hex).join("-")
    }

    /// Reads the text form of the header `traceparent`; `None` if it is not valid.
    #[must_use]
    pub fn from_traceparent(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let mut bytes = [0; Self::LEN];
        for range in [0..1, 1..17, 17..25, 25..26] {
            let part = parts.next()?;
            let room = &mut bytes[range];
            if part.len() != 2 * room.len() || !part.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return None;
            }
            for (byte, at) in room.iter_mut().zip((0..).step_by(2)) {
                *byte = u8::from_str_radix(part.get(at..at + 2)?, 16).ok()?;
            }
        }
        let is_zero = |range: std::ops::Range<usize>| bytes[range].iter().all(|byte| *byte == 0);
        // Later versions may have more parts; version 255 is forbidden, and all-zero ids are
        // invalid.
        let wrong = bytes[0] == 0xff || is_zero(1..17) || is_zero(17..25);
        let extra = bytes[0] == 0 && parts.next().is_some();
        (!wrong && !extra).then_some(Self(bytes))
    }
}

impl std::fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_traceparent())
    }
}
