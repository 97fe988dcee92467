#[apus_macros::service]
trait Log {
    #[notify]
    async fn write(&self, line: String) -> u32;
}

fn main() {}
