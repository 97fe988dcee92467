//! What active messages may have granted, for introspection.

use super::Granter;
use crate::rpc::{RpcKey, Rpcs};
use smallvec::SmallVec;

impl Granter {
    /// Returns the active messages, each with the bytes that it may have granted and not received: its window (GRANT-4,
    /// GRANT-15), or what it lacks if that is less.
    pub(crate) fn credits(&self, rpcs: &Rpcs) -> SmallVec<[(RpcKey, u32); 8]> {
        let mut active = self.candidates.select(self.max_active);
        let together = self.elsewhere.narrow(&mut active, self.max_active);
        let usual = self.window.terms(together);
        let credit = |rpc| self.terms_of(&rpcs[rpc], usual).window;
        active.iter().map(|key| (key.rpc, credit(key.rpc).min(key.missing))).collect()
    }
}
