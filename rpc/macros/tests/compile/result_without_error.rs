#[apus_macros::service]
trait Store {
    async fn get(&self, key: String) -> std::io::Result<String>;
}

fn main() {}
