//! Checkpoints: the directory is made durable, the store's state is written to a snapshot, and a
//! new log is started.

use apus_fs_core::store::StoreError;

use super::DirectoryStore;
use super::snapshot;

impl DirectoryStore {
    /// Makes a checkpoint. If it fails, the current log continues.
    pub(crate) fn checkpoint(&mut self) -> Result<(), StoreError> {
        let next = self.log.next();
        // There is no work to save, and the segment already has this number.
        if next == self.log.first() && self.pending.is_empty() {
            return Ok(());
        }
        let state = &self.files.state;
        self.files.fail_point.pass();
        self.counters.checkpoints += 1;
        state.sync_export()?;
        self.files.fail_point.pass();
        snapshot::write(state, &self.knowledge, next)?;
        self.files.fail_point.pass();
        // Everything that was noted for the next frame is in the snapshot.
        self.pending.clear();
        if next != self.log.first() {
            self.log = self.log.succeed(state)?;
        }
        for segment in state.segments()? {
            if segment < next {
                self.files.fail_point.pass();
                state.remove_segment(segment)?;
            }
        }
        Ok(())
    }
}
