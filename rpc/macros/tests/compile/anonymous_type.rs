#[apus_macros::service]
trait Store {
    async fn list(&self) -> impl Iterator<Item = u8>;
}

fn main() {}
