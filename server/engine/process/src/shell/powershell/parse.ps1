$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'
function ConvertTo-KodeLsText($text) {
    [Convert]::ToBase64String([Text.Encoding]::UTF8.GetBytes([string]$text))
}
$text = [Text.Encoding]::UTF8.GetString([Convert]::FromBase64String($env:KODE_LS_PARSED))
$tokens = $null
$problems = $null
$tree = [System.Management.Automation.Language.Parser]::ParseInput($text, [ref]$tokens, [ref]$problems)
$nodes = @($tree.FindAll({ param($node) $true }, $true))
$problem = ''
if ($problems.Count -gt 0) { $problem = ConvertTo-KodeLsText $problems[0].Message }
ConvertTo-Json -Compress -InputObject @{ version = 1; nodes = $nodes.Count; problems = $problems.Count; problem = $problem }
if ($problems.Count -gt 0 -or $nodes.Count -gt 5000) { exit 0 }
$numbers = New-Object 'System.Collections.Generic.Dictionary[object,int]'
foreach ($node in $nodes) {
    $kind = $node.GetType().Name
    $line = @{ kind = $kind; start = $node.Extent.StartOffset; end = $node.Extent.EndOffset; parent = -1 }
    if ($null -ne $node.Parent -and $numbers.ContainsKey($node.Parent)) { $line.parent = $numbers[$node.Parent] }
    $numbers[$node] = $numbers.Count
    switch ($kind) {
        'CommandAst' { $line.form = [string]$node.InvocationOperator }
        'StringConstantExpressionAst' { $line.value = ConvertTo-KodeLsText $node.Value; $line.form = [string]$node.StringConstantType }
        'CommandParameterAst' { $line.value = ConvertTo-KodeLsText $node.ParameterName }
        'VariableExpressionAst' { $line.value = ConvertTo-KodeLsText $node.VariablePath.UserPath; if ($node.Splatted) { $line.form = 'Splatted' } }
        'NamedBlockAst' { if (-not $node.Unnamed) { $line.form = 'Named' } }
        'PipelineAst' { if ($node.Background) { $line.form = 'Background' } }
        'PipelineChainAst' { if ($node.Background) { $line.form = 'Background' } }
        'UnaryExpressionAst' { $line.form = [string]$node.TokenKind }
        'MemberExpressionAst' { if ($node.Static) { $line.form = 'Static' } }
    }
    ConvertTo-Json -Compress -InputObject $line
}
