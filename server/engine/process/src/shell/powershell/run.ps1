$ProgressPreference = 'SilentlyContinue'
try {
    $KodeLsUtf8 = New-Object System.Text.UTF8Encoding $false
    $OutputEncoding = $KodeLsUtf8
    [Console]::OutputEncoding = $KodeLsUtf8
} catch { }
if ($PSVersionTable.PSVersion.Major -lt 6) { $PSDefaultParameterValues['Out-File:Encoding'] = 'utf8' }
if ($null -ne $PSStyle) { $PSStyle.OutputRendering = 'PlainText' }
$KodeLsReport = $env:KODE_LS_REPORT
$KodeLsText = Get-Content -Raw -LiteralPath $env:KODE_LS_SCRIPT -Encoding UTF8
Remove-Item -Path Env:KODE_LS_SCRIPT, Env:KODE_LS_REPORT -ErrorAction SilentlyContinue
$KodeLsCode = 0
$KodeLsSucceeded = $true
$global:LASTEXITCODE = 0
try {
    try {
        $KodeLsBlock = [ScriptBlock]::Create($KodeLsText + "`n`n" + '$KodeLsSucceeded = $?')
    } catch {
        $KodeLsBlock = [ScriptBlock]::Create($KodeLsText)
    }
    . $KodeLsBlock
    if (-not $KodeLsSucceeded) {
        $KodeLsCode = 1
        if ($LASTEXITCODE) { $KodeLsCode = $LASTEXITCODE }
    }
} catch {
    $KodeLsCode = 1
    Write-Error -ErrorRecord $_ -ErrorAction Continue
} finally {
    if ($KodeLsReport) {
        $KodeLsFolder = (Get-Location -PSProvider FileSystem).ProviderPath
        Set-Content -LiteralPath $KodeLsReport -Value $KodeLsFolder -Encoding UTF8 -ErrorAction SilentlyContinue
    }
}
exit $KodeLsCode
