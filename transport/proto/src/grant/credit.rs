//! Credit of active messages, for introspection.

use super::Granter;
use crate::rpc::{RpcKey, Rpcs};
use smallvec::SmallVec;

impl Granter {
    /// Returns the active messages, each with its credit: the bytes that may be granted and not
    /// received, which is its window (GRANT-4, GRANT-15), or its missing bytes if those are fewer.
    pub(crate) fn credits(&self, rpcs: &Rpcs) -> SmallVec<[(RpcKey, u32); 8]> {
        let mut active = self.candidates.select(self.max_active);
        let together = self.elsewhere.narrow(&mut active, self.max_active);
        let usual = self.window.terms(together);
        let credit = |rpc| self.terms_of(&rpcs[rpc], usual).window;
        active.iter().map(|key| (key.rpc, credit(key.rpc).min(key.missing))).collect()
    }
}
