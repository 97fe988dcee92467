//! The name of an RPC at this end.

slotmap::new_key_type! {
    /// Names a live RPC at this end. A name is never reused, so that a late reply or
    /// cancellation cannot affect another RPC. It is not the id on the wire.
    pub struct RpcKey;
}
