//! The name of an RPC at this end.

slotmap::new_key_type! {
    /// Names a live RPC at this end. A name is never given to another RPC, so that a late reply or
    /// cancellation cannot hit the wrong one. Not the id on the wire.
    pub struct RpcKey;
}
