# The program, built by Nix from this repository: `nix run 'github:kode-ls/kode-ls?dir=server/packages/nix'`.
#
# Rule: the sources are those of the repository around this folder; release archives have a file of their own (kode-ls.nix).
{
  description = "A coding agent that is a language server";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
        "x86_64-darwin"
        "aarch64-darwin"
      ];
      forEach = nixpkgs.lib.genAttrs systems;
    in
    {
      packages = forEach (system: rec {
        kode-ls = nixpkgs.legacyPackages.${system}.callPackage ./package.nix { };
        default = kode-ls;
      });

      apps = forEach (system: {
        default = {
          type = "app";
          program = nixpkgs.lib.getExe self.packages.${system}.default;
        };
      });
    };
}
