# The program from source, for `callPackage`.
#
# Rule: version and dependencies are those of Cargo.toml and Cargo.lock; nothing is repeated here.
{
  lib,
  rustPlatform,
}:

let
  root = ../../..;
  manifest = lib.importTOML (root + "/Cargo.toml");
in
rustPlatform.buildRustPackage {
  pname = "kode-ls";
  inherit (manifest.workspace.package) version;

  # The benchmarks and test crates are members of the workspace, which cargo reads as a whole.
  src = lib.fileset.toSource {
    inherit root;
    fileset = lib.fileset.unions [
      (root + "/Cargo.toml")
      (root + "/Cargo.lock")
      (root + "/protocol")
      (root + "/server")
      (root + "/tests")
    ];
  };
  cargoLock.lockFile = root + "/Cargo.lock";

  buildAndTestSubdir = "server";
  buildType = "dist";
  # The tests start servers, namespaces and programs of others.
  doCheck = false;

  meta = {
    description = "Coding agent that is a language server";
    homepage = manifest.workspace.package.repository;
    license = with lib.licenses; [
      mit
      asl20
    ];
    mainProgram = "kode-ls";
    platforms = lib.platforms.unix;
  };
}
