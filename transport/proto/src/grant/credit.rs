//! Credit of active messages, for introspection.

use super::Granter;
use super::candidates::Key;
use crate::rpc::{RpcKey, Rpcs};
use smallvec::SmallVec;

impl Granter {
    /// Returns the active messages, each with its credit: the bytes that may be granted and not
    /// received, which is its window (GRANT-4, GRANT-15), or its missing bytes if those are fewer.
    pub(crate) fn credits(&self, rpcs: &Rpcs) -> SmallVec<[(RpcKey, u32); 8]> {
        let (active, together) = self.active();
        let shares = self.shares(rpcs, &active, together);
        let credit = |(key, among): (&Key, usize)| {
            let terms = self.terms_of(&rpcs[key.rpc], self.window.terms(among));
            (key.rpc, terms.window.min(key.missing))
        };
        active.iter().zip(shares).map(credit).collect()
    }
}
